// park_swept: an event loop goes on parking while what it has freed is on its way back to the OS.
//
// Each round fills some MiB, frees nine tenths at random and parks. From then on a peer wakes the loop at even
// distances over the time in which an allocator gives the memory back; the loop serves a little and parks again.
// Measured is what the two calls cost the loop: `park_begin_*` and `park_end_*` over all wake-ups, and `handover_*` for
// the first park of a round, the one that has everything to hand over. `handover_cpu_ns_max` is that call's processor
// time: what the owner itself did, however busy the machine is.
#include <time.h>

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
#include "common/wakeup.h"

namespace {

using namespace tidemark;

struct Options {
  std::uint64_t rounds = 8;
  std::uint64_t fill_mib = 256;
  std::uint64_t size_min = 64;
  std::uint64_t size_max = 4096;
  std::uint64_t free_percent = 90;
  std::uint64_t wakeups = 400;
  std::uint64_t spread_ms = 500;
  std::uint64_t burst = 32;
  std::uint64_t seed = 1;
};

std::uint64_t own_processor_ns() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * kNanosecondsPerSecond + static_cast<std::uint64_t>(used.tv_nsec);
}

class ParkSwept {
 public:
  ParkSwept(Session& session, const Options& options)
      : session_(session),
        options_(options),
        random_(options.seed),
        blocks_(options.fill_mib * kMiB / ((options.size_min + options.size_max) / 2)),
        burst_(options.burst) {}

  Checksum run() {
    auto peer = [this](std::size_t) { wake_loop(); };
    team_.start(1, peer);
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      fill_empty();
      free_most();
      start_.signal();
      hand_over();
      for (std::uint64_t wakeup = 0; wakeup < options_.wakeups; ++wakeup) {
        request_.wait();
        end_park();
        serve();
        answer_.signal();
        begin_park();
      }
      end_park();
      session_.checkpoint(round, "round", live_bytes_);
    }
    session_.end_region();
    team_.join();
    for (Block& block : blocks_) {
      if (block.address != nullptr) release(block);
    }
    return checksum_;
  }

  const Latency& begins() const { return begins_; }
  const Latency& ends() const { return ends_; }
  const Latency& handovers() const { return handovers_; }
  double handover_processor_ns() const { return static_cast<double>(handover_processor_ns_); }

 private:
  void wake_loop() {
    const std::uint64_t period_ns = options_.spread_ms * kNanosecondsPerMillisecond / options_.wakeups;
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      start_.wait();
      std::uint64_t due_ns = now_ns();
      for (std::uint64_t wakeup = 0; wakeup < options_.wakeups; ++wakeup) {
        due_ns += period_ns;
        wait_until_ns(due_ns);
        request_.signal();
        answer_.wait();
      }
    }
  }

  void hand_over() {
    const std::uint64_t used_ns = own_processor_ns();
    const std::uint64_t begin_ns = now_ns();
    session_.adapter().park_begin();
    handovers_.add(now_ns() - begin_ns);
    const std::uint64_t cost_ns = own_processor_ns() - used_ns;
    if (cost_ns > handover_processor_ns_) handover_processor_ns_ = cost_ns;
  }

  void begin_park() {
    const std::uint64_t begin_ns = now_ns();
    session_.adapter().park_begin();
    begins_.add(now_ns() - begin_ns);
  }

  void end_park() {
    const std::uint64_t begin_ns = now_ns();
    session_.adapter().park_end();
    ends_.add(now_ns() - begin_ns);
  }

  void serve() {
    for (Block& block : burst_) acquire(block);
    for (Block& block : burst_) release(block);
  }

  void fill_empty() {
    for (Block& block : blocks_) {
      if (block.address == nullptr) acquire(block);
    }
  }

  void free_most() {
    for (Block& block : blocks_) {
      if (random_.below(100) < options_.free_percent) release(block);
    }
  }

  void acquire(Block& block) {
    block = make_filled(random_.between(options_.size_min, options_.size_max), random_.next());
    live_bytes_ += block.size;
  }

  void release(Block& block) {
    checksum_.add(block.tag ^ block.size);
    live_bytes_ -= block.size;
    free_filled(block);
  }

  Session& session_;
  const Options options_;
  Random random_;
  Table<Block> blocks_;
  Table<Block> burst_;
  Wakeup start_;
  Wakeup request_;
  Wakeup answer_;
  Team team_;
  Latency begins_;
  Latency ends_;
  Latency handovers_;
  std::uint64_t handover_processor_ns_ = 0;
  Checksum checksum_;
  std::uint64_t live_bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--fill-mib", options.fill_mib, 1, 1 << 20, "MiB to fill, by the mean size"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--free-percent", options.free_percent, 0, 100, "per cent freed in each round, at random"),
      integer("--wakeups", options.wakeups, 1, 1'000'000, "times that the loop is woken in a round"),
      integer("--spread-ms", options.spread_ms, 0, 60'000, "milliseconds over which a round's wake-ups are spread"),
      integer("--burst", options.burst, 0, 1'000'000, "blocks that one wake-up allocates and frees"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "An event loop parks while memory goes back.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD, {.park = true});
  ParkSwept workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.rounds * options.wakeups,
                     {{"park_begin_ns_p50", workload.begins().percentile_ns(500)},
                      {"park_begin_ns_p999", workload.begins().percentile_ns(999)},
                      {"park_end_ns_p50", workload.ends().percentile_ns(500)},
                      {"park_end_ns_p999", workload.ends().percentile_ns(999)},
                      {"park_end_ns_max", workload.ends().maximum_ns()},
                      {"handover_ns_p50", workload.handovers().percentile_ns(500)},
                      {"handover_cpu_ns_max", workload.handover_processor_ns()}});
}
