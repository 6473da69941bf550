// square_wave: memory in use, then not, then in use again, faster than a purge should react.
//
// Each wave fills some MiB with blocks of 1 to 64 KiB, frees them and rests for 50 ms. An allocator that
// gives memory back at once pays for every wave with page faults; one that waits a little pays once. The
// metric `faults_per_wave` leaves out the first wave, whose faults nobody can avoid.
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
  std::uint64_t waves = 20;
  std::uint64_t fill_mib = 100;
  std::uint64_t size_min = 1024;
  std::uint64_t size_max = 65536;
  std::uint64_t rest_ms = 50;
  std::uint64_t seed = 1;
};

class SquareWave {
 public:
  SquareWave(Session& session, const Options& options)
      : session_(session),
        options_(options),
        blocks_(options.fill_mib * kMiB / ((options.size_min + options.size_max) / 2)) {}

  Checksum run() {
    session_.begin_region();
    for (std::uint64_t wave = 0; wave < options_.waves; ++wave) {
      const std::uint64_t faults = minor_faults();
      // The same sizes in each wave: what was enough once is enough again.
      Random random(options_.seed);
      std::uint64_t live_bytes = 0;
      for (Block& block : blocks_) {
        block = {nullptr, random.between(options_.size_min, options_.size_max), random.next()};
        block.address = must_malloc(block.size);
        touch(block.address, block.size, block.tag);
        live_bytes += block.size;
      }
      if (wave != 0) later_faults_ += minor_faults() - faults;
      session_.checkpoint(wave, "round", live_bytes);
      for (Block& block : blocks_) {
        check_touch(block.address, block.size, block.tag);
        checksum_.add(block.tag ^ block.size);
        std::free(block.address);
      }
      wait_until_ns(now_ns() + options_.rest_ms * kNanosecondsPerMillisecond);
    }
    session_.end_region();
    return checksum_;
  }

  std::uint64_t operations() const { return options_.waves * blocks_.size(); }

  double faults_per_wave() const {
    if (options_.waves < 2) return 0;
    return static_cast<double>(later_faults_) / static_cast<double>(options_.waves - 1);
  }

 private:
  Session& session_;
  const Options options_;
  Table<Block> blocks_;
  Checksum checksum_;
  std::uint64_t later_faults_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--waves", options.waves, 1, 100'000, "waves"),
      integer("--fill-mib", options.fill_mib, 1, 1 << 20, "MiB in use at the top of a wave"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--rest-ms", options.rest_ms, 0, 60'000, "milliseconds of rest behind each wave"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Uses memory in short waves.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD);
  SquareWave workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), workload.operations(), {{"faults_per_wave", workload.faults_per_wave()}});
}
