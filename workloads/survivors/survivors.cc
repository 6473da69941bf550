// survivors: heaps are deleted while some of their blocks live on, to be freed by another thread.
//
// Each round builds objects with a heap each, frees two thirds of the blocks, deletes the heaps, and hands what
// is left to a second thread, which frees it one round later. The live bytes are the same after each round. An
// allocator that loses sight of pages whose heap is gone grows by all of them.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/session.h"
#include "common/settle.h"
#include "common/table.h"
#include "common/threads.h"

namespace {

using namespace tidemark;

// Every third block outlives its heap.
constexpr std::size_t kSurviveEvery = 3;

struct Options {
  std::uint64_t heaps = 1000;
  std::uint64_t blocks = 60;
  std::uint64_t size_min = 16;
  std::uint64_t size_max = 1024;
  std::uint64_t rounds = 20;
  std::uint64_t settle_ms = 0;
  std::uint64_t seed = 1;
};

// The survivors of one round; there are two, one being filled while the other is freed.
struct Generation {
  explicit Generation(std::size_t capacity) : blocks(capacity) {}

  Table<Block> blocks;
  std::size_t count = 0;
  std::uint64_t live_bytes = 0;
};

class Survivors {
 public:
  Survivors(Session& session, const Options& options)
      : session_(session),
        options_(options),
        heaps_(options.heaps),
        blocks_(options.heaps * options.blocks),
        even_(capacity(options)),
        odd_(capacity(options)),
        barrier_(2) {}

  Checksum run() {
    auto body = [this](std::size_t) { free_rounds(); };
    team_.start(1, body);
    settle(options_.settle_ms);
    session_.checkpoint(0, "empty", 0);
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      build(round);
      session_.checkpoint(round, "peak", live_bytes_ + generation(round + 1).live_bytes);
      thin_out_and_delete(generation(round));
      barrier_.meet();  // the other thread frees the generation before this one
      barrier_.meet();
      settle(options_.settle_ms);
      session_.checkpoint(round, "round", generation(round).live_bytes);
    }
    session_.end_region();
    team_.join();
    release_all(generation(options_.rounds - 1), checksum_);
    settle(options_.settle_ms);
    session_.checkpoint(options_.rounds - 1, "freed", 0);
    checksum_.merge(others_sum_);
    return checksum_;
  }

 private:
  static std::size_t capacity(const Options& options) { return options.heaps * (options.blocks / kSurviveEvery + 1); }

  Generation& generation(std::uint64_t round) { return round % 2 == 0 ? even_ : odd_; }

  // The same sizes in each round; the tags differ.
  void build(std::uint64_t round) {
    Random random(options_.seed);
    live_bytes_ = 0;
    for (std::size_t heap = 0; heap < options_.heaps; ++heap) {
      heaps_[heap] = session_.adapter().heap_new();
      if (session_.adapter().heap_native() && heaps_[heap] == nullptr) fail_broken("no memory for a new heap");
      for (Block& block : blocks_.part(heap * options_.blocks, options_.blocks)) {
        const std::size_t size = random.between(options_.size_min, options_.size_max);
        block = {session_.adapter().heap_malloc(heaps_[heap], size), size, mix(random.next() ^ round)};
        if (block.address == nullptr) fail_broken("no memory for a block of a heap");
        stamp(block.address, size, block.tag);
        live_bytes_ += size;
      }
    }
  }

  void thin_out_and_delete(Generation& left) {
    left.count = 0;
    left.live_bytes = 0;
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
      Block& block = blocks_[index];
      if (index % options_.blocks % kSurviveEvery == 0) {
        left.blocks[left.count++] = block;
        left.live_bytes += block.size;
      } else {
        checksum_.add(block.tag ^ block.size);
        free_stamped(block);
      }
    }
    for (void* heap : heaps_) session_.adapter().heap_delete(heap);
  }

  void free_rounds() {
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      if (round != 0) {
        const ThreadRegion region;
        release_all(generation(round - 1), others_sum_);
      }
      barrier_.meet();
    }
  }

  static void release_all(Generation& left, Checksum& checksum) {
    for (Block& block : left.blocks.part(0, left.count)) {
      checksum.add(block.tag ^ block.size);
      free_stamped(block);
    }
    left.count = 0;
    left.live_bytes = 0;
  }

  Session& session_;
  const Options options_;
  Table<void*> heaps_;
  Table<Block> blocks_;
  Generation even_;
  Generation odd_;
  Barrier barrier_;
  Team team_;
  std::uint64_t live_bytes_ = 0;
  Checksum checksum_;
  Checksum others_sum_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--heaps", options.heaps, 1, 100'000, "heaps alive at once"),
      integer("--blocks", options.blocks, 1, 100'000, "blocks in each heap"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--settle-ms", options.settle_ms, 0, 60'000,
              "least milliseconds of rest before a round's point; 0 for none"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Deletes heaps whose blocks live on.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD, {.heap_delete = true});
  Survivors workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.rounds * options.heaps * (options.blocks + 1));
}
