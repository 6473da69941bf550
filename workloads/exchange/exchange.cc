// exchange: threads swap blocks through a shared table.
//
// Each thread puts a fresh block in a random place of one table and frees whatever stood there, which
// most of the time another thread allocated. Sizes are mixed, so every thread's pages fill with holes
// that others made.
#include <atomic>
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/session.h"
#include "common/table.h"
#include "common/threads.h"

namespace {

using namespace tidemark;

// Begins every block, so that whoever swaps it out knows what it should hold.
struct Header {
  std::uint64_t tag;
  std::uint64_t size;
};

struct Options {
  std::uint64_t threads = 2;
  std::uint64_t iterations = 200'000;
  std::uint64_t places = 1024;
  std::uint64_t size_min = 32;
  std::uint64_t size_max = 1024;
  std::uint64_t seed = 1;
};

class Exchange {
 public:
  Exchange(Session& session, const Options& options)
      : session_(session),
        options_(options),
        places_(options.places),
        sums_(options.threads),
        barrier_(options.threads + 1) {}

  Checksum run() {
    auto body = [this](std::size_t index) {
      barrier_.meet();
      {
        const ThreadRegion region;
        swap_blocks(index);
      }
      barrier_.meet();
    };
    team_.start(options_.threads, body);
    session_.begin_region();
    barrier_.meet();
    barrier_.meet();
    session_.end_region();
    team_.join();
    Checksum all;
    for (const Checksum& sum : sums_) all.merge(sum);
    session_.checkpoint(0, "round", live_bytes());
    for (std::atomic<void*>& place : places_) release(place.load(std::memory_order_relaxed), all);
    return all;
  }

 private:
  void swap_blocks(std::size_t index) {
    Random random(options_.seed, index);
    Checksum sum;
    for (std::uint64_t step = 0; step < options_.iterations; ++step) {
      const std::uint64_t tag = random.next();
      const Header header{tag, options_.size_min + Random::scale(tag, options_.size_max - options_.size_min + 1)};
      void* block = must_malloc(header.size);
      store_word(block, 0, header.tag);
      store_word(block, sizeof header.tag, header.size);
      store_word(block, header.size - sizeof header.tag, ~header.tag);
      // The exchange releases what was written and acquires what another thread wrote.
      release(places_[random.below(options_.places)].exchange(block, std::memory_order_acq_rel), sum);
    }
    sums_[index] = sum;
  }

  Header header_of(const void* block) const {
    const Header header{load_word(block, 0), load_word(block, sizeof(std::uint64_t))};
    if (header.size < options_.size_min || header.size > options_.size_max) [[unlikely]] {
      fail_contents(block, options_.size_min, sizeof header.tag, options_.size_min, header.size);
    }
    return header;
  }

  void release(void* block, Checksum& sum) const {
    if (block == nullptr) return;
    const Header header = header_of(block);
    check_word(block, header.size, header.size - sizeof header.tag, ~header.tag);
    sum.add(header.tag ^ header.size);
    spoil(block);
    std::free(block);
  }

  std::uint64_t live_bytes() {
    std::uint64_t bytes = 0;
    for (std::atomic<void*>& place : places_) {
      const void* block = place.load(std::memory_order_relaxed);
      if (block != nullptr) bytes += header_of(block).size;
    }
    return bytes;
  }

  Session& session_;
  const Options options_;
  Table<std::atomic<void*>> places_;
  Table<Checksum> sums_;
  Barrier barrier_;
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, 64, "threads that swap"),
      integer("--iterations", options.iterations, 1, 10'000'000'000, "swaps of each thread"),
      integer("--places", options.places, 1, 1 << 24, "places in the shared table"),
      integer("--size-min", options.size_min, 32, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, 32, 1 << 24, "largest block in bytes"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads swap blocks through a shared table.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD);
  Exchange exchange(session, options);
  const Checksum checksum = exchange.run();
  return session.end(checksum.value(), options.threads * options.iterations);
}
