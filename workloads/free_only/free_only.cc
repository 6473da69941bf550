// free_only: one thread frees everything and never allocates.
//
// Producers keep live sets of equal blocks and replace them at random; each replaced block goes through
// a bounded queue to a thread whose only call is free. The live bytes are strictly bounded, so the
// resident memory must be too. Between rounds the queue is drained and the series gets a point.
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

struct Options {
  std::uint64_t producers = 6;
  std::uint64_t live = 20'000;
  std::uint64_t size = 592;
  std::uint64_t replaced = 20'000;
  std::uint64_t rounds = 15;
  std::uint64_t depth = 4096;
  std::uint64_t seed = 1;
};

class FreeOnly {
 public:
  FreeOnly(Session& session, const Options& options)
      : session_(session),
        options_(options),
        live_(options.producers * options.live),
        queue_(options.depth),
        barrier_(options.producers + 2) {}

  Checksum run() {
    auto body = [this](std::size_t index) {
      if (index < options_.producers) {
        produce_rounds(index);
      } else {
        free_rounds();
      }
    };
    team_.start(options_.producers + 1, body);
    barrier_.meet();  // the live sets stand
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      barrier_.meet();
      session_.checkpoint(round, "round", live_.size() * options_.size);
    }
    session_.end_region();
    team_.join();
    for (void* block : live_) release(block);
    return checksum_;
  }

 private:
  void* make(Random& random) const {
    void* block = must_malloc(options_.size);
    stamp(block, options_.size, random.next());
    return block;
  }

  // Only ever called by one thread at a time: the freeing thread, then main after the join.
  void release(void* block) {
    const std::uint64_t tag = load_word(block, 0);
    check_stamp(block, options_.size, tag);
    checksum_.add(tag);
    spoil(block);
    std::free(block);
  }

  void produce_rounds(std::size_t index) {
    Random random(options_.seed, index);
    const std::span<void*> mine = live_.part(index * options_.live, options_.live);
    for (void*& block : mine) block = make(random);
    barrier_.meet();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      {
        const ThreadRegion region;
        for (std::uint64_t step = 0; step < options_.replaced; ++step) {
          void*& place = mine[random.below(mine.size())];
          while (!queue_.try_push(place)) sched_yield();
          place = make(random);
        }
      }
      barrier_.meet();
    }
  }

  void free_rounds() {
    barrier_.meet();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      {
        const ThreadRegion region;
        void* block;
        for (std::uint64_t left = options_.producers * options_.replaced; left != 0;) {
          if (queue_.try_pop(block)) {
            release(block);
            --left;
          } else {
            sched_yield();
          }
        }
      }
      barrier_.meet();
    }
  }

  Session& session_;
  const Options options_;
  Table<void*> live_;
  Queue<void*> queue_;
  Barrier barrier_;
  Team team_;
  Checksum checksum_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--producers", options.producers, 1, 64, "threads that allocate"),
      integer("--live", options.live, 1, 10'000'000, "blocks that each producer keeps"),
      integer("--size", options.size, kMinStampedBytes, 1 << 20, "size of a block in bytes"),
      integer("--replaced", options.replaced, 1, 1'000'000'000, "blocks that each producer replaces in a round"),
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--depth", options.depth, 2, 1 << 20, "places in the queue; a power of two"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "One thread frees what all others allocate.", table, argc, argv);
  if ((options.depth & (options.depth - 1)) != 0) fail_usage("--depth needs a power of two");
  Session session(TIDEMARK_WORKLOAD);
  FreeOnly workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.producers * options.replaced * options.rounds);
}
