// short_threads: threads that allocate a little and exit.
//
// What a thread's first allocation and its exit cost, and whether anything stays behind. Each wave starts
// a few threads, each builds a small live set, frees it (or leaves a part for the main thread to free
// after the join) and exits.
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

struct Options {
  std::uint64_t threads = 4;
  std::uint64_t waves = 200;
  std::uint64_t blocks = 64;
  std::uint64_t left_percent = 0;
  std::uint64_t size_min = 16;
  std::uint64_t size_max = 2048;
  std::uint64_t seed = 1;
};

class ShortThreads {
 public:
  ShortThreads(Session& session, const Options& options)
      : session_(session), options_(options), blocks_(options.threads * options.blocks), sums_(options.threads) {}

  Checksum run() {
    // A checkpoint at every wave would be most of the work; twenty make a series.
    const std::uint64_t step = options_.waves < kCheckpoints ? 1 : options_.waves / kCheckpoints;
    Checksum all;
    session_.begin_region();
    for (std::uint64_t wave = 0; wave < options_.waves; ++wave) {
      auto body = [this, wave](std::size_t index) { live(index, wave); };
      team_.start(options_.threads, body);
      team_.join();
      for (Block& block : blocks_) {
        if (block.address != nullptr) release(block, all);
      }
      if ((wave + 1) % step == 0) session_.checkpoint(wave, "round", 0);
    }
    session_.end_region();
    for (const Checksum& sum : sums_) all.merge(sum);
    return all;
  }

 private:
  static constexpr std::uint64_t kCheckpoints = 20;

  void live(std::size_t index, std::uint64_t wave) {
    const ThreadRegion region;
    Random random(options_.seed, wave * options_.threads + index);
    const std::span<Block> mine = blocks_.part(index * options_.blocks, options_.blocks);
    for (Block& block : mine) {
      block = make_stamped(random.between(options_.size_min, options_.size_max), random.next());
    }
    for (Block& block : mine) {
      if (random.below(100) >= options_.left_percent) release(block, sums_[index]);
    }
  }

  static void release(Block& block, Checksum& sum) {
    sum.add(block.tag ^ block.size);
    free_stamped(block);
  }

  Session& session_;
  const Options options_;
  Table<Block> blocks_;
  Table<Checksum> sums_;
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, 256, "threads of one wave"),
      integer("--waves", options.waves, 1, 1'000'000, "waves"),
      integer("--blocks", options.blocks, 1, 1'000'000, "blocks that each thread allocates"),
      integer("--left-percent", options.left_percent, 0, 100, "per cent that a thread leaves to main"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads allocate a little and exit.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD);
  ShortThreads workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.threads * options.waves * options.blocks);
}
