// forced: a collect that must give everything back before it returns.
//
// Each round fills some MiB and frees them while a neighbour thread does the same with a smaller part, so
// that a purge may well be on its way; then the main thread forces a collect and the resident memory is
// looked at (`round`). Measured: how long the forced collect takes, and how long one takes that finds
// nothing to do. Where an allocator has no such call the start event says `emulated`, and the figures are
// the clock's own cost.
#include <atomic>
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/clock.h"
#include "common/latency.h"
#include "common/random.h"
#include "common/session.h"
#include "common/table.h"
#include "common/threads.h"

namespace {

using namespace tidemark;

constexpr std::size_t kBlockMin = 4 * kKiB;
constexpr std::size_t kBlockMax = 256 * kKiB;
// Forced collects behind the one that had work.
constexpr int kEmptyCollects = 10;

struct Options {
  std::uint64_t rounds = 20;
  std::uint64_t fill_mib = 384;
  std::uint64_t neighbour_mib = 32;
  std::uint64_t seed = 1;
};

std::size_t block_count(std::uint64_t fill_mib) { return fill_mib * kMiB / ((kBlockMin + kBlockMax) / 2); }

// Fills and empties a table of blocks; one thread.
class Filler {
 public:
  explicit Filler(std::uint64_t fill_mib) : blocks_(block_count(fill_mib)) {}

  std::uint64_t fill_all(Random& random) {
    std::uint64_t live_bytes = 0;
    for (Block& block : blocks_) {
      block = {nullptr, random.between(kBlockMin, kBlockMax), random.next()};
      block.address = must_malloc(block.size);
      touch(block.address, block.size, block.tag);
      live_bytes += block.size;
    }
    return live_bytes;
  }

  void free_all(Checksum& checksum) {
    for (Block& block : blocks_) {
      check_touch(block.address, block.size, block.tag);
      checksum.add(block.tag ^ block.size);
      std::free(block.address);
    }
  }

  std::size_t size() const { return blocks_.size(); }

 private:
  Table<Block> blocks_;
};

class Forced {
 public:
  Forced(Session& session, const Options& options)
      : session_(session), options_(options), own_(options.fill_mib), neighbour_(options.neighbour_mib), barrier_(2) {}

  Checksum run() {
    auto body = [this](std::size_t) { live_beside(); };
    team_.start(1, body);
    Random random(options_.seed);
    Checksum checksum;
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      session_.checkpoint(round, "peak", own_.fill_all(random));
      own_.free_all(checksum);
      collect(with_work_);
      barrier_.meet();  // the neighbour's blocks are free as well
      for (int empty = 0; empty < kEmptyCollects; ++empty) collect(empty == 0 ? with_work_ : without_work_);
      session_.checkpoint(round, "round", 0);
    }
    session_.end_region();
    team_.join();
    checksum.merge(neighbours_sum_);
    return checksum;
  }

  const Latency& with_work() const { return with_work_; }
  const Latency& without_work() const { return without_work_; }
  std::uint64_t operations() const { return options_.rounds * (own_.size() + neighbour_.size()); }

 private:
  void live_beside() {
    Random random(options_.seed, 1);
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      neighbour_.fill_all(random);
      neighbour_.free_all(neighbours_sum_);
      barrier_.meet();
    }
  }

  void collect(Latency& latency) {
    const std::uint64_t begin = now_ns();
    session_.adapter().collect(true);
    latency.add(now_ns() - begin);
  }

  Session& session_;
  const Options options_;
  Filler own_;
  Filler neighbour_;
  Barrier barrier_;
  Team team_;
  Checksum neighbours_sum_;
  Latency with_work_;
  Latency without_work_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--fill-mib", options.fill_mib, 1, 1 << 20, "MiB that main fills and frees in a round"),
      integer("--neighbour-mib", options.neighbour_mib, 1, 1 << 20, "MiB that the other thread does"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Forces collects after everything was freed.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD, {.collect = true});
  Forced workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), workload.operations(),
                     {{"collect_ns_p50", workload.with_work().percentile_ns(500)},
                      {"collect_ns_max", workload.with_work().maximum_ns()},
                      {"collect_empty_ns_p50", workload.without_work().percentile_ns(500)},
                      {"collect_empty_ns_max", workload.without_work().maximum_ns()}});
}
