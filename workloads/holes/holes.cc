// holes: blocks freed among live ones, the free pages given back, and then filled again.
//
// Fills memory, frees nine tenths at random, rests (parked, where the allocator has that), and fills the
// holes with blocks of the same sizes. Giving free pages inside used ones back must not make them costly
// to use again: `refill_faults` is compared with `fill_faults`, what the same bytes cost fresh. Live
// blocks are checked to the byte after each step.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/resident.h"
#include "common/session.h"
#include "common/table.h"

namespace {

using namespace tidemark;

struct Options {
  std::uint64_t rounds = 15;
  std::uint64_t fill_mib = 256;
  std::uint64_t size_min = 1000;
  std::uint64_t size_max = 4096;
  std::uint64_t free_percent = 90;
  std::uint64_t rest_ms = 250;
  std::uint64_t seed = 1;
};

class Holes {
 public:
  Holes(Session& session, const Options& options)
      : session_(session),
        options_(options),
        random_(options.seed),
        blocks_(options.fill_mib * kMiB / ((options.size_min + options.size_max) / 2)) {}

  Checksum run() {
    session_.begin_region();
    fill_faults_ = fill_empty();
    session_.checkpoint(0, "filled", live_bytes_);
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      punch();
      session_.end_region();
      rest();
      check_live();
      session_.checkpoint(round, "round", live_bytes_,
                          {{"floor_bytes", static_cast<double>(floor_bytes(blocks_.all()))}});
      session_.begin_region();
      refill_faults_ += fill_empty();
      check_live();
    }
    session_.end_region();
    for (Block& block : blocks_) {
      checksum_.add(block.tag ^ block.size);
      free_filled(block);
    }
    return checksum_;
  }

  double fill_faults() const { return static_cast<double>(fill_faults_); }
  // Of one round, scaled to the share of blocks that it filled, so that it compares with fill_faults.
  double refill_faults() const {
    const double share = static_cast<double>(options_.rounds * options_.free_percent) / 100.0;
    return share == 0 ? 0 : static_cast<double>(refill_faults_) / share;
  }
  std::uint64_t operations() const { return operations_; }

 private:
  // Returns the page faults of filling every empty place.
  std::uint64_t fill_empty() {
    const std::uint64_t before = minor_faults();
    for (Block& block : blocks_) {
      if (block.address != nullptr) continue;
      block = make_filled(random_.between(options_.size_min, options_.size_max), random_.next());
      live_bytes_ += block.size;
      ++operations_;
    }
    return minor_faults() - before;
  }

  void punch() {
    for (Block& block : blocks_) {
      if (random_.below(100) >= options_.free_percent) continue;
      checksum_.add(block.tag ^ block.size);
      live_bytes_ -= block.size;
      free_filled(block);
      ++operations_;
    }
  }

  void rest() {
    session_.adapter().park_begin();
    wait_until_ns(now_ns() + options_.rest_ms * kNanosecondsPerMillisecond);
    session_.adapter().park_end();
  }

  void check_live() const {
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
      const Block& block = blocks_[index];
      if (block.address != nullptr) check(block.address, block.size, block.tag);
    }
  }

  Session& session_;
  const Options options_;
  Random random_;
  Table<Block> blocks_;
  Checksum checksum_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t operations_ = 0;
  std::uint64_t fill_faults_ = 0;
  std::uint64_t refill_faults_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--rounds", options.rounds, 1, 10'000, "rounds of freeing and refilling"),
      integer("--fill-mib", options.fill_mib, 1, 1 << 20, "MiB to fill, by the mean size"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--free-percent", options.free_percent, 0, 100, "per cent freed in each round, at random"),
      integer("--rest-ms", options.rest_ms, 0, 60'000, "milliseconds of rest before a round's checkpoint"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Frees among live blocks, rests and fills the holes.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD, {.park = true});
  Holes workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), workload.operations(),
                     {{"fill_faults", workload.fill_faults()}, {"refill_faults", workload.refill_faults()}});
}
