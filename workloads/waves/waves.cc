// waves: worker threads that come, fill memory, free all of it and exit, again and again.
//
// All threads of a wave hold their blocks at the same time, so each wave needs the same memory. After
// each wave nothing is live and no worker exists: the resident memory should be back near where it began,
// and must not grow from wave to wave.
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

struct Options {
  std::uint64_t threads = 50;
  std::uint64_t waves = 4;
  std::uint64_t fill_kib = 8192;
  std::uint64_t size = 1000;
  std::uint64_t settle_ms = 2000;
  std::uint64_t seed = 1;
};

class Waves {
 public:
  Waves(Session& session, const Options& options)
      : session_(session),
        options_(options),
        per_thread_(options.fill_kib * kKiB / options.size),
        blocks_(options.threads * per_thread_),
        sums_(options.threads),
        barrier_(options.threads + 1) {}

  Checksum run() {
    session_.begin_region();
    for (std::uint64_t wave = 0; wave < options_.waves; ++wave) {
      auto body = [this, wave](std::size_t index) { fill_and_free(index, wave); };
      team_.start(options_.threads, body);
      barrier_.meet();
      session_.checkpoint(wave, "peak", blocks_.size() * options_.size);
      barrier_.meet();
      team_.join();
      settle(options_.settle_ms);
      session_.checkpoint(wave, "round", 0);
    }
    session_.end_region();
    Checksum all;
    for (const Checksum& sum : sums_) all.merge(sum);
    return all;
  }

  std::uint64_t operations() const { return options_.waves * blocks_.size(); }

 private:
  void fill_and_free(std::size_t index, std::uint64_t wave) {
    const std::span<Block> mine = blocks_.part(index * per_thread_, per_thread_);
    Random random(options_.seed, wave * options_.threads + index);
    {
      const ThreadRegion region;
      for (Block& block : mine) block = make_filled(options_.size, random.next());
    }
    barrier_.meet();
    barrier_.meet();
    const ThreadRegion region;
    for (Block& block : mine) {
      sums_[index].add(block.tag);
      free_filled(block);
    }
  }

  Session& session_;
  const Options options_;
  const std::size_t per_thread_;
  Table<Block> blocks_;
  Table<Checksum> sums_;
  Barrier barrier_;
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, Team::kMaxThreads, "threads of one wave"),
      integer("--waves", options.waves, 1, 100'000, "waves"),
      integer("--fill-kib", options.fill_kib, 1024, 1 << 24, "KiB that each thread fills"),
      integer("--size", options.size, kMinStampedBytes, 1 << 20, "size of a block in bytes"),
      integer("--settle-ms", options.settle_ms, 0, 60'000,
              "least milliseconds of rest before a wave's point; 0 for none"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads come in waves, fill memory and exit.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Waves waves(session, options);
  const Checksum checksum = waves.run();
  return session.end(checksum.value(), waves.operations());
}
