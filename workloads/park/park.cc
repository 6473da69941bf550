// park: an event loop that hands its heaps over while it waits.
//
// A peer wakes the loop so many times a second; each time the loop serves a little, allocating and
// freeing, and waits again between park_begin and park_end. Measured: what both calls cost the loop, and
// the resident memory as it goes on. `--park no` is the same loop without the calls; `--rate 0` wakes it
// again as soon as it has answered, which makes its throughput the figure.
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

constexpr std::uint64_t kSeries = 15;

struct Options {
  std::uint64_t wakeups = 2000;
  std::uint64_t rate = 0;
  std::uint64_t blocks = 64;
  std::uint64_t kept = 4096;
  std::uint64_t park = 1;
  std::uint64_t seed = 1;
};

class Park {
 public:
  Park(Session& session, const Options& options)
      : session_(session), options_(options), random_(options.seed), kept_(options.kept), burst_(options.blocks) {}

  Checksum run() {
    for (Block& block : kept_) acquire(block);
    auto peer = [this](std::size_t) { wake_loop(); };
    team_.start(1, peer);
    const std::uint64_t step = options_.wakeups < kSeries ? 1 : options_.wakeups / kSeries;
    session_.begin_region();
    for (std::uint64_t wakeup = 0; wakeup < options_.wakeups; ++wakeup) {
      wait_parked();
      serve();
      if ((wakeup + 1) % step == 0) session_.checkpoint(wakeup / step, "round", live_bytes_);
      answer_.signal();
    }
    session_.end_region();
    team_.join();
    for (Block& block : kept_) release(block);
    return checksum_;
  }

  const Latency& latency() const { return latency_; }
  std::uint64_t handed_over() const { return handed_over_; }

 private:
  // The peer never runs ahead: it waits for each answer, so the work is the same in every run.
  void wake_loop() {
    const std::uint64_t period_ns = options_.rate == 0 ? 0 : kNanosecondsPerSecond / options_.rate;
    std::uint64_t due_ns = now_ns();
    for (std::uint64_t wakeup = 0; wakeup < options_.wakeups; ++wakeup) {
      due_ns += period_ns;
      if (period_ns != 0) wait_until_ns(due_ns);
      request_.signal();
      answer_.wait();
    }
  }

  // Looks at the clock in any case, so that the two loops differ by the calls alone.
  void wait_parked() {
    const bool parks = options_.park != 0;
    const std::uint64_t begin = now_ns();
    const bool handed_over = parks && session_.adapter().park_begin();
    const std::uint64_t parked = now_ns();
    request_.wait();
    const std::uint64_t woken = now_ns();
    if (parks) session_.adapter().park_end();
    latency_.add((parked - begin) + (now_ns() - woken));
    handed_over_ += handed_over ? 1 : 0;
  }

  // A burst that dies at once, and one kept block in its place.
  void serve() {
    for (Block& block : burst_) acquire(block);
    Block& old = kept_[random_.below(kept_.size())];
    release(old);
    acquire(old);
    for (Block& block : burst_) release(block);
  }

  void acquire(Block& block) {
    block = make_stamped(random_.between(kMinStampedBytes, 2 * kKiB), random_.next());
    live_bytes_ += block.size;
  }

  void release(Block& block) {
    checksum_.add(block.tag ^ block.size);
    live_bytes_ -= block.size;
    free_stamped(block);
  }

  Session& session_;
  const Options options_;
  Random random_;
  Table<Block> kept_;
  Table<Block> burst_;
  Wakeup request_;
  Wakeup answer_;
  Team team_;
  Latency latency_;
  Checksum checksum_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t handed_over_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--wakeups", options.wakeups, 1, 1'000'000'000, "times that the loop is woken"),
      integer("--rate", options.rate, 0, 1'000'000, "wake-ups a second; 0 for as soon as it has answered"),
      integer("--blocks", options.blocks, 1, 1'000'000, "blocks that one wake-up allocates and frees"),
      integer("--kept", options.kept, 1, 10'000'000, "blocks that stay, replaced one by one"),
      choice("--park", options.park, kNoYes, "whether the loop parks around its wait"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "An event loop parks around its wait.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD, {.park = options.park != 0});
  Park workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.wakeups,
                     {{"park_ns_p50", workload.latency().percentile_ns(500)},
                      {"park_ns_p999", workload.latency().percentile_ns(999)},
                      {"park_ns_max", workload.latency().maximum_ns()},
                      {"parks_handed_over", static_cast<double>(workload.handed_over())}});
}
