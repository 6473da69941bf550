// handoff: a pool whose batches go to one worker after the other.
//
// In each round one worker of many, chosen at random, allocates a batch (one large block and many small
// ones), frees all of it and sleeps. At any time one batch is live at most. An allocator that leaves freed
// memory with the thread that freed it holds a batch for each worker in the end.
#include <atomic>
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

constexpr std::size_t kNodeMin = 32;
constexpr std::size_t kNodeMax = 256;

struct Options {
  std::uint64_t workers = 20;
  std::uint64_t rounds = 100;
  std::uint64_t large_mib = 50;
  std::uint64_t nodes_mib = 100;
  std::uint64_t settle_ms = 0;
  std::uint64_t seed = 1;
};

class Handoff {
 public:
  Handoff(Session& session, const Options& options)
      : session_(session),
        options_(options),
        nodes_(options.nodes_mib * kMiB / ((kNodeMin + kNodeMax) / 2)),
        begin_(options.workers + 1),
        end_(options.workers + 1) {}

  Checksum run() {
    auto body = [this](std::size_t index) { sleep_and_work(index); };
    team_.start(options_.workers, body);
    Random random(options_.seed);
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      chosen_ = random.below(options_.workers);
      round_ = round;
      begin_.meet();
      end_.meet();
      settle(options_.settle_ms);
      session_.checkpoint(round, "round", 0, {{"peak_bytes", static_cast<double>(peak_bytes_)}});
    }
    session_.end_region();
    team_.join();
    return checksum_;
  }

  std::uint64_t operations() const { return options_.rounds * (nodes_.size() + 1); }

 private:
  // The barriers order what main and the chosen worker write.
  void sleep_and_work(std::size_t index) {
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      begin_.meet();
      if (index == chosen_) {
        const ThreadRegion region;
        work();
      }
      end_.meet();
    }
  }

  void work() {
    Random random(options_.seed, round_ + 1);
    Block large{must_malloc(options_.large_mib * kMiB), options_.large_mib * kMiB, random.next()};
    touch(large.address, large.size, large.tag);
    peak_bytes_ = large.size;
    for (Block& node : nodes_) {
      node = make_filled(random.between(kNodeMin, kNodeMax), random.next());
      peak_bytes_ += node.size;
    }
    for (Block& node : nodes_) {
      checksum_.add(node.tag ^ node.size);
      free_filled(node);
    }
    check_touch(large.address, large.size, large.tag);
    checksum_.add(large.tag);
    std::free(large.address);
  }

  Session& session_;
  const Options options_;
  Table<Block> nodes_;
  Barrier begin_;
  Barrier end_;
  Team team_;
  std::size_t chosen_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t peak_bytes_ = 0;
  Checksum checksum_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--workers", options.workers, 1, 256, "workers in the pool"),
      integer("--rounds", options.rounds, 1, 100'000, "batches"),
      integer("--large-mib", options.large_mib, 1, 1 << 20, "MiB of a batch's large block"),
      integer("--nodes-mib", options.nodes_mib, 1, 1 << 20, "MiB of a batch's small blocks"),
      integer("--settle-ms", options.settle_ms, 0, 60'000,
              "least milliseconds of rest before a batch's point; 0 for none"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Hands batches to one worker after the other.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Handoff workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), workload.operations());
}
