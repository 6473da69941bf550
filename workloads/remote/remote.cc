// remote: producers allocate, consumers free.
//
// Blocks travel in batches through a bounded lock-free queue, and empty batches come back through
// another, so neither side can run away from the other. Every free is one from another thread.
#include <sched.h>

#include <atomic>
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/queue.h"
#include "common/random.h"
#include "common/session.h"
#include "common/table.h"
#include "common/threads.h"

namespace {

using namespace tidemark;

constexpr std::size_t kBatchMax = 256;
// Looks at a queue before the processor is given away; a peer may need this very one.
constexpr int kSpins = 64;

struct Options {
  std::uint64_t producers = 1;
  std::uint64_t consumers = 1;
  std::uint64_t blocks = 1'000'000;
  std::uint64_t size_min = 64;
  std::uint64_t size_max = 64;
  std::uint64_t batch = 64;
  std::uint64_t depth = 64;
  std::uint64_t seed = 1;
};

struct Batch {
  std::uint32_t count;
  void* blocks[kBatchMax];
};

// The block itself says what it should hold: its tag first, then the tag's complement mixed with its size.
void seal(void* block, std::size_t size, std::uint64_t tag) {
  store_word(block, 0, tag);
  store_word(block, sizeof tag, ~tag ^ size);
}

// Returns the tag; the size must be one that producers make.
std::uint64_t unseal(const void* block, const Options& options) {
  const std::uint64_t tag = load_word(block, 0);
  const std::uint64_t size = ~tag ^ load_word(block, sizeof tag);
  if (size < options.size_min || size > options.size_max) [[unlikely]] {
    fail_contents(block, options.size_min, sizeof tag, ~tag ^ options.size_min, load_word(block, sizeof tag));
  }
  return tag;
}

class Remote {
 public:
  Remote(Session& session, const Options& options)
      : session_(session),
        options_(options),
        batches_(options.depth),
        full_(options.depth),
        spare_(options.depth),
        sums_(options.consumers),
        barrier_(options.producers + options.consumers + 1) {
    for (Batch& batch : batches_) spare_.try_push(&batch);
  }

  Checksum run() {
    auto body = [this](std::size_t index) {
      barrier_.meet();
      {
        const ThreadRegion region;
        if (index < options_.producers) {
          produce(index);
        } else {
          consume(index - options_.producers);
        }
      }
      barrier_.meet();
    };
    team_.start(options_.producers + options_.consumers, body);
    session_.begin_region();
    barrier_.meet();
    barrier_.meet();
    session_.end_region();
    session_.checkpoint(0, "round", 0);
    team_.join();
    Checksum all;
    for (const Checksum& sum : sums_) all.merge(sum);
    return all;
  }

 private:
  // Producer `index` makes blocks number index, index + producers, …
  void produce(std::size_t index) {
    Random random(options_.seed, index);
    const std::uint64_t range = options_.size_max - options_.size_min + 1;
    std::uint64_t number = index;
    while (number < options_.blocks) {
      Batch* batch = wait_for(spare_);
      for (batch->count = 0; batch->count < options_.batch && number < options_.blocks; ++batch->count) {
        const std::uint64_t tag = random.next();
        const std::size_t size = options_.size_min + Random::scale(tag, range);
        void* block = must_malloc(size);
        seal(block, size, tag);
        batch->blocks[batch->count] = block;
        number += options_.producers;
      }
      full_.try_push(batch);  // there are no more batches than cells
    }
  }

  void consume(std::size_t index) {
    Checksum sum;
    int spins = 0;
    while (consumed_.load(std::memory_order_acquire) != options_.blocks) {
      Batch* batch;
      if (!full_.try_pop(batch)) {
        pause(spins);
        continue;
      }
      for (std::uint32_t slot = 0; slot < batch->count; ++slot) {
        sum.add(unseal(batch->blocks[slot], options_));
        spoil(batch->blocks[slot]);
        std::free(batch->blocks[slot]);
      }
      const std::uint64_t count = batch->count;
      spare_.try_push(batch);
      consumed_.fetch_add(count, std::memory_order_acq_rel);
    }
    sums_[index] = sum;
  }

  static Batch* wait_for(Queue<Batch*>& queue) {
    Batch* batch;
    for (int spins = 0; !queue.try_pop(batch);) pause(spins);
    return batch;
  }

  static void pause(int& spins) {
    if (++spins < kSpins) {
      relax();
    } else {
      spins = 0;
      sched_yield();
    }
  }

  Session& session_;
  const Options options_;
  Table<Batch> batches_;
  Queue<Batch*> full_;
  Queue<Batch*> spare_;
  Table<Checksum> sums_;
  std::atomic<std::uint64_t> consumed_{0};
  Barrier barrier_;
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--producers", options.producers, 1, 64, "threads that allocate"),
      integer("--consumers", options.consumers, 1, 64, "threads that free"),
      integer("--blocks", options.blocks, 1, 10'000'000'000, "blocks in all"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 20, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 20, "largest block in bytes"),
      integer("--batch", options.batch, 1, kBatchMax, "blocks handed over together"),
      integer("--depth", options.depth, 1, 1 << 16, "batches on their way at most; a power of two"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Producers allocate, consumers free.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  if ((options.depth & (options.depth - 1)) != 0) fail_usage("--depth needs a power of two");
  Session session(TIDEMARK_WORKLOAD);
  Remote remote(session, options);
  const Checksum checksum = remote.run();
  return session.end(checksum.value(), options.blocks);
}
