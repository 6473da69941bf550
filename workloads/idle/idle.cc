// idle: fill, free most of it, then do nothing.
//
// What a server keeps after its busy hour. Blocks are freed at random (`--free-percent`) or all but one
// in `--keep-every`; then nobody calls the allocator again and the resident memory is watched. The
// metric `floor_bytes` is the least that any allocator can keep: the OS pages with a live byte on them.
// `--rounds` repeats it with a single look after each round (`round`), which makes a series: what an idle
// process keeps must not grow with the number of its busy hours.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/resident.h"
#include "common/session.h"
#include "common/settle.h"
#include "common/table.h"

namespace {

using namespace tidemark;

struct Options {
  std::uint64_t fill_mib = 256;
  std::uint64_t blocks = 0;
  std::uint64_t size_min = 64;
  std::uint64_t size_max = 4096;
  std::uint64_t free_percent = 90;
  std::uint64_t keep_every = 0;
  std::uint64_t idle_ms = 5000;
  std::uint64_t rounds = 1;
  std::uint64_t settle_ms = 150;
  std::uint64_t park = 0;
  std::uint64_t seed = 1;
};

// Milliseconds after the last free at which the idle process is looked at.
constexpr std::uint64_t kIdleStepsMs[] = {250, 500, 1000, 1300, 2000, 3000, 4000, 5000};

std::uint64_t block_count(const Options& options) {
  if (options.blocks != 0) return options.blocks;
  return options.fill_mib * kMiB / ((options.size_min + options.size_max) / 2);
}

class Idle {
 public:
  Idle(Session& session, const Options& options)
      : session_(session), options_(options), random_(options.seed), blocks_(block_count(options)) {}

  Checksum run() {
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      // The same sizes and the same survivors in each round, so that rounds need the same; the tags differ.
      random_ = Random(options_.seed);
      session_.begin_region();
      fill_all(round);
      session_.checkpoint(round, "filled", live_bytes_);
      free_most();
      session_.end_region();
      const std::uint64_t freed_ns = now_ns();
      const auto floor = static_cast<double>(floor_bytes(blocks_.all()));
      if (options_.rounds == 1) {
        session_.checkpoint(round, "freed", live_bytes_, {{"floor_bytes", floor}});
        watch(freed_ns, floor);
      } else {
        rest();
        session_.checkpoint(round, "round", live_bytes_, {{"floor_bytes", floor}});
      }
      free_kept();
    }
    return checksum_;
  }

  std::uint64_t operations() const { return operations_; }

 private:
  void fill_all(std::uint64_t round) {
    for (Block& block : blocks_) {
      const std::uint64_t draw = random_.next();
      const std::size_t size = options_.size_min + Random::scale(draw, options_.size_max - options_.size_min + 1);
      block = make_filled(size, mix(draw ^ round));
      live_bytes_ += block.size;
    }
    operations_ += blocks_.size();
  }

  bool keeps(std::size_t index) {
    if (options_.keep_every != 0) return index % options_.keep_every == 0;
    return random_.below(100) >= options_.free_percent;
  }

  void free_most() {
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
      if (keeps(index)) continue;
      live_bytes_ -= blocks_[index].size;
      checksum_.add(blocks_[index].tag);
      free_filled(blocks_[index]);
      ++operations_;
    }
  }

  void watch(std::uint64_t freed_ns, double floor) {
    for (const std::uint64_t step_ms : kIdleStepsMs) {
      if (step_ms > options_.idle_ms) break;
      rest_until(freed_ns + step_ms * kNanosecondsPerMillisecond);
      session_.checkpoint(0, "idle", live_bytes_, {{"floor_bytes", floor}});
    }
  }

  void rest() {
    if (options_.park != 0) session_.adapter().park_begin();
    settle(options_.settle_ms);
    if (options_.park != 0) session_.adapter().park_end();
  }

  void rest_until(std::uint64_t deadline_ns) {
    if (options_.park != 0) session_.adapter().park_begin();
    wait_until_ns(deadline_ns);
    if (options_.park != 0) session_.adapter().park_end();
  }

  // What stayed must have survived whatever the allocator did around it.
  void free_kept() {
    for (Block& block : blocks_) {
      if (block.address == nullptr) continue;
      checksum_.add(block.tag ^ block.size);
      live_bytes_ -= block.size;
      free_filled(block);
    }
  }

  Session& session_;
  const Options options_;
  Random random_;
  Table<Block> blocks_;
  Checksum checksum_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t operations_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--fill-mib", options.fill_mib, 1, 1 << 20, "MiB to fill, by the mean size"),
      integer("--blocks", options.blocks, 0, 1'000'000'000, "blocks to fill instead of --fill-mib; 0 for that"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--free-percent", options.free_percent, 0, 100, "per cent freed, at random"),
      integer("--keep-every", options.keep_every, 0, 1'000'000, "keep one block in so many instead; 0 for not"),
      integer("--idle-ms", options.idle_ms, 0, 5000, "milliseconds to watch"),
      integer("--rounds", options.rounds, 1, 10'000, "rounds; with more than one, each gives one point"),
      integer("--settle-ms", options.settle_ms, 0, 60'000,
              "least milliseconds of rest before a round's point; 0 for none"),
      choice("--park", options.park, kNoYes, "whether the idle thread parks its heaps"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Fills memory, frees most of it and does nothing.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD, {.park = options.park != 0});
  Idle idle(session, options);
  const Checksum checksum = idle.run();
  return session.end(checksum.value(), idle.operations());
}
