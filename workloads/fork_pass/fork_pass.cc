// fork_pass: fork while freed memory is on its way back to the OS.
//
// Each round fills some MiB, frees all of it and then forks again and again over the time in which an
// allocator may be purging. The child allocates and frees a little and ends; the parent waits for it.
// Measured: how long the fork call takes the parent. It contains the kernel's copying of page tables,
// which shrinks as memory goes back. So the workload's own handlers stand before and behind all others that fork calls:
// `fork_delay_*` is the time between, in which an allocator keeps its threads still and waits for its own purge.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/clock.h"
#include "common/latency.h"
#include "common/random.h"
#include "common/session.h"
#include "common/table.h"

namespace {

using namespace tidemark;

constexpr std::size_t kBlockMin = 16 * kKiB;
constexpr std::size_t kBlockMax = 1 * kMiB;
constexpr std::size_t kChildBlocks = 64;
// A child that has not ended by then hangs on a lock that nobody will open.
constexpr unsigned kChildSeconds = 30;

// Prepare handlers run in the reverse order of their registration, a parent's in that order: those that are registered
// first are next to the fork itself, those registered last are outermost.
struct ForkTimes {
  std::uint64_t begun_ns, prepared_ns, forked_ns, ended_ns;

  std::uint64_t delay_ns() const { return (prepared_ns - begun_ns) + (ended_ns - forked_ns); }
};
ForkTimes g_times;

void watch_innermost() {
  pthread_atfork([] { g_times.prepared_ns = now_ns(); }, [] { g_times.forked_ns = now_ns(); }, nullptr);
}

void watch_outermost() {
  pthread_atfork([] { g_times.begun_ns = now_ns(); }, [] { g_times.ended_ns = now_ns(); }, nullptr);
}

// Before any library's initialisation, an allocator's included.
[[gnu::section(".preinit_array"), gnu::used]] void (*g_first_of_all)() = watch_innermost;

struct Options {
  std::uint64_t rounds = 5;
  std::uint64_t forks = 40;
  std::uint64_t fill_mib = 384;
  std::uint64_t spread_ms = 200;
  std::uint64_t seed = 1;
};

class ForkPass {
 public:
  ForkPass(Session& session, const Options& options)
      : session_(session),
        options_(options),
        random_(options.seed),
        blocks_(options.fill_mib * kMiB / ((kBlockMin + kBlockMax) / 2)) {}

  Checksum run() {
    watch_outermost();
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      fill_and_free();
      std::uint64_t due_ns = now_ns();
      for (std::uint64_t number = 0; number < options_.forks; ++number) {
        fork_once();
        due_ns += options_.spread_ms * kNanosecondsPerMillisecond / options_.forks;
        wait_until_ns(due_ns);
      }
      session_.checkpoint(round, "round", 0);
    }
    session_.end_region();
    return checksum_;
  }

  const Latency& latency() const { return latency_; }
  const Latency& delay() const { return delay_; }

 private:
  void fill_and_free() {
    for (Block& block : blocks_) {
      block = {nullptr, random_.between(kBlockMin, kBlockMax), random_.next()};
      block.address = must_malloc(block.size);
      touch(block.address, block.size, block.tag);
    }
    for (Block& block : blocks_) {
      check_touch(block.address, block.size, block.tag);
      checksum_.add(block.tag ^ block.size);
      std::free(block.address);
    }
  }

  void fork_once() {
    const std::uint64_t begin = now_ns();
    const pid_t child = fork();
    if (child < 0) fail_broken_errno("cannot fork");
    if (child == 0) run_child();
    latency_.add(now_ns() - begin);
    delay_.add(g_times.delay_ns());
    int status;
    while (waitpid(child, &status, 0) < 0) {
      if (errno != EINTR) fail_broken_errno("cannot wait for a child");
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      fail_corruption("a child of fork hung, died or found wrong contents");
    }
  }

  [[noreturn]] void run_child() {
    alarm(kChildSeconds);
    Block blocks[kChildBlocks];
    for (Block& block : blocks) block = make_filled(random_.between(kMinStampedBytes, 64 * kKiB), random_.next());
    for (Block& block : blocks) free_filled(block);
    _exit(0);
  }

  Session& session_;
  const Options options_;
  Random random_;
  Table<Block> blocks_;
  Checksum checksum_;
  Latency latency_;
  Latency delay_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--forks", options.forks, 1, 100'000, "forks in a round"),
      integer("--fill-mib", options.fill_mib, 1, 1 << 20, "MiB that are filled and freed"),
      integer("--spread-ms", options.spread_ms, 0, 60'000, "milliseconds over which a round's forks are spread"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Forks while freed memory goes back.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  ForkPass workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.rounds * options.forks,
                     {{"fork_ns_p50", workload.latency().percentile_ns(500)},
                      {"fork_ns_p99", workload.latency().percentile_ns(990)},
                      {"fork_ns_max", workload.latency().maximum_ns()},
                      {"fork_delay_ns_p50", workload.delay().percentile_ns(500)},
                      {"fork_delay_ns_p99", workload.delay().percentile_ns(990)},
                      {"fork_delay_ns_max", workload.delay().maximum_ns()}});
}
