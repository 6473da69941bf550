// fork_parked: threads park around a blocking wait while another thread forks.
//
// Every thread keeps blocks that never change and churns others whenever it is woken. The main thread
// wakes them all and forks in the middle of it. The child checks every byte that its gone siblings kept,
// allocates, frees half of what they left, collects and ends; the parent waits for it. Measured: how
// long a thread takes to hand its heaps over and to get them back, and the memory of the process tree
// (checkpoint `tree`, taken while the child still lives; `child_pid` says where).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
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
#include "common/threads.h"
#include "common/wakeup.h"

namespace {

using namespace tidemark;

constexpr std::size_t kThreadsMax = 64;
constexpr std::size_t kSizeMin = 16;
constexpr std::size_t kSizeMax = 2048;
// A child that has not ended by then hangs on a lock that nobody will open.
constexpr unsigned kChildSeconds = 30;
// Every that many forks the child is held for the `tree` checkpoint.
constexpr std::uint64_t kHeldForkStep = 4;
constexpr std::size_t kChildBlocks = 256;

struct Options {
  std::uint64_t threads = 4;
  std::uint64_t kept = 2000;
  std::uint64_t churned = 200;
  std::uint64_t forks = 20;
  std::uint64_t seed = 1;
};

struct Worker {
  Latency handover;
  Checksum checksum;
  std::uint64_t handed_over;
};

class ForkParked {
 public:
  ForkParked(Session& session, const Options& options)
      : session_(session),
        options_(options),
        kept_(options.threads * options.kept),
        workers_(options.threads),
        ready_(options.threads + 1) {}

  void run() {
    auto body = [this](std::size_t index) { work(index); };
    team_.start(options_.threads, body);
    ready_.meet();
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.forks; ++round) fork_once(round);
    session_.end_region();
    stop_.store(true, std::memory_order_release);
    wake_all();
    team_.join();
  }

  Checksum checksum() const {
    Checksum all;
    for (std::size_t index = 0; index < options_.threads; ++index) all.merge(workers_[index].checksum);
    return all;
  }

  void merge_latency(Latency& all, std::uint64_t& handed_over) const {
    for (std::size_t index = 0; index < options_.threads; ++index) {
      all.merge(workers_[index].handover);
      handed_over += workers_[index].handed_over;
    }
  }

  std::uint64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }

 private:
  std::span<Block> kept(std::size_t index) { return kept_.part(index * options_.kept, options_.kept); }

  void work(std::size_t index) {
    Random random(options_.seed, index);
    for (Block& block : kept(index)) {
      block = make_filled(random.between(kSizeMin, kSizeMax), random.next());
      live_bytes_.fetch_add(block.size, std::memory_order_relaxed);
    }
    Worker& worker = workers_[index];
    ready_.meet();
    while (!stop_.load(std::memory_order_acquire)) {
      park(worker, wakes_[index]);
      const ThreadRegion region;
      churn(random);
    }
    for (Block& block : kept(index)) {
      worker.checksum.add(block.tag ^ block.size);
      free_filled(block);
    }
  }

  // The hand-over's cost to its owner: both calls, without the wait between them.
  void park(Worker& worker, const Wakeup& wake) {
    const std::uint64_t begin = now_ns();
    const bool handed_over = session_.adapter().park_begin();
    const std::uint64_t parked = now_ns();
    wake.wait();
    const std::uint64_t woken = now_ns();
    session_.adapter().park_end();
    worker.handover.add((parked - begin) + (now_ns() - woken));
    worker.handed_over += handed_over ? 1 : 0;
  }

  void churn(Random& random) {
    Block blocks[16];
    for (std::uint64_t step = 0; step < options_.churned; step += 16) {
      for (Block& block : blocks) block = make_stamped(random.between(kSizeMin, kSizeMax), random.next());
      for (Block& block : blocks) free_stamped(block);
    }
  }

  void wake_all() {
    for (std::size_t index = 0; index < options_.threads; ++index) wakes_[index].signal();
  }

  void fork_once(std::uint64_t round) {
    int held[2];
    if (pipe2(held, O_CLOEXEC) != 0) fail_broken_errno("cannot make a pipe");
    int done[2];
    if (pipe2(done, O_CLOEXEC) != 0) fail_broken_errno("cannot make a pipe");
    wake_all();
    const pid_t child = fork();
    if (child < 0) fail_broken_errno("cannot fork");
    if (child == 0) run_child(round, done[1], held);
    close(held[0]);
    close(done[1]);
    if (round % kHeldForkStep == 0) hold(round, child, done[0]);
    close(held[1]);  // end of file lets the child end
    close(done[0]);
    await(child);
  }

  // Looks at the tree when the child has done its work and still lives.
  void hold(std::uint64_t round, pid_t child, int done) {
    char byte;
    while (read(done, &byte, 1) < 0 && errno == EINTR) {
    }
    session_.checkpoint(round, "tree", live_bytes(), {{"child_pid", static_cast<double>(child)}});
  }

  [[noreturn]] void run_child(std::uint64_t round, int done, const int held[2]) {
    alarm(kChildSeconds);
    close(held[1]);
    for (Block& block : kept_) check(block.address, block.size, block.tag);
    Random random(options_.seed, options_.threads + round);
    Block own[kChildBlocks];
    for (Block& block : own) block = make_filled(random.between(kSizeMin, kSizeMax), random.next());
    for (std::size_t index = 0; index < kept_.size(); index += 2) free_filled(kept_[index]);
    for (Block& block : own) free_filled(block);
    session_.adapter().collect(true);
    for (std::size_t index = 1; index < kept_.size(); index += 2) {
      check(kept_[index].address, kept_[index].size, kept_[index].tag);
    }
    const char byte = 1;
    if (write(done, &byte, 1) == 1) {
      char end;
      while (read(held[0], &end, 1) < 0 && errno == EINTR) {
      }
    }
    _exit(0);
  }

  static void await(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0) {
      if (errno != EINTR) fail_broken_errno("cannot wait for a child");
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
      fail_corruption("a child of fork did not end within 30 s: it hangs in the allocator");
    }
    if (WIFSIGNALED(status)) fail_corruption("a child of fork was killed by a signal");
    if (WEXITSTATUS(status) != 0) fail_corruption("a child of fork found wrong contents or could not run");
  }

  Session& session_;
  const Options options_;
  Table<Block> kept_;
  Table<Worker> workers_;
  Wakeup wakes_[kThreadsMax];
  Barrier ready_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> live_bytes_{0};
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, kThreadsMax, "threads that park"),
      integer("--kept", options.kept, 1, 10'000'000, "blocks that each thread keeps"),
      integer("--churned", options.churned, 0, 10'000'000, "blocks that a woken thread allocates and frees"),
      integer("--forks", options.forks, 1, 100'000, "forks"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads park around a wait while another forks.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD, {.collect = true, .park = true});
  ForkParked workload(session, options);
  workload.run();
  Latency latency;
  std::uint64_t handed_over = 0;
  workload.merge_latency(latency, handed_over);
  return session.end(workload.checksum().value(), options.forks,
                     {{"handover_ns_p50", latency.percentile_ns(500)},
                      {"handover_ns_p999", latency.percentile_ns(999)},
                      {"handover_ns_max", latency.maximum_ns()},
                      {"parks", static_cast<double>(latency.count())},
                      {"parks_handed_over", static_cast<double>(handed_over)}});
}
