// buffers: workers churn big buffers, free them all, and then spin without calling the allocator.
//
// Each worker holds a few buffers, replaces them at random, and touches every page. Once all is freed no
// thread calls the allocator again: what then goes back to the OS, the allocator returns by itself,
// against busy threads. `--rounds` repeats the whole, with a checkpoint after each round has settled.
// `--spread-ms` spreads each worker's frees over some time in which it spins, so that frees arrive before,
// during and behind a purge that is already running.
#include <atomic>
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/session.h"
#include "common/settle.h"
#include "common/table.h"
#include "common/threads.h"

namespace {

using namespace tidemark;

struct Options {
  std::uint64_t workers = 8;
  std::uint64_t buffers = 4;
  std::uint64_t size_min_kib = 1024;
  std::uint64_t size_max_kib = 8192;
  std::uint64_t replacements = 24;
  std::uint64_t rounds = 1;
  std::uint64_t settle_ms = 150;
  std::uint64_t spread_ms = 0;
  std::uint64_t idle_ms = 2500;
  std::uint64_t seed = 1;
};

// Where the looks at an idle process lie, in milliseconds after everything was freed.
constexpr std::uint64_t kIdleStepsMs[] = {250, 500, 1000, 1500, 2000, 2500};

struct Worker {
  Checksum checksum;
  std::uint64_t live_bytes;
};

class Buffers {
 public:
  Buffers(Session& session, const Options& options)
      : session_(session),
        options_(options),
        blocks_(options.workers * options.buffers),
        workers_(options.workers),
        barrier_(options.workers + 1) {}

  Checksum run() {
    auto body = [this](std::size_t index) { work(index); };
    session_.begin_region();
    team_.start(options_.workers, body);
    for (std::uint64_t round = 0; round < options_.rounds; ++round) lead(round);
    session_.end_region();
    lead_idle();
    spin_.fetch_add(1, std::memory_order_release);
    team_.join();
    Checksum all;
    for (const Worker& worker : workers_) all.merge(worker.checksum);
    return all;
  }

  std::uint64_t operations() const {
    return options_.rounds * options_.workers * (options_.buffers + options_.replacements);
  }

 private:
  // The main thread's side of one round.
  void lead(std::uint64_t round) {
    barrier_.meet();  // all buffers are held
    std::uint64_t live_bytes = 0;
    for (const Worker& worker : workers_) live_bytes += worker.live_bytes;
    session_.checkpoint(round, "peak", live_bytes);
    barrier_.meet();  // go and free
    barrier_.meet();  // all is freed
    freed_ns_ = now_ns();
    if (options_.rounds == 1) {
      session_.checkpoint(round, "freed", 0);
      return;
    }
    settle(options_.settle_ms);
    session_.checkpoint(round, "round", 0);
    if (round + 1 != options_.rounds) spin_.fetch_add(1, std::memory_order_release);
  }

  void lead_idle() {
    if (options_.rounds != 1) return;
    for (const std::uint64_t step_ms : kIdleStepsMs) {
      if (step_ms > options_.idle_ms) break;
      wait_until_ns(freed_ns_ + step_ms * kNanosecondsPerMillisecond);
      session_.checkpoint(0, "idle", 0);
    }
  }

  void work(std::size_t index) {
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      {
        const ThreadRegion region;
        churn(index, round);
      }
      barrier_.meet();
      barrier_.meet();
      {
        const ThreadRegion region;
        free_all(index);
      }
      barrier_.meet();
      while (spin_.load(std::memory_order_acquire) == round) relax();
    }
  }

  void churn(std::size_t index, std::uint64_t round) {
    // The same sizes in each round, so that rounds need the same; the tags differ.
    Random random(options_.seed, index);
    for (Block& block : mine(index)) acquire(index, block, random, round);
    for (std::uint64_t step = 0; step < options_.replacements; ++step) {
      Block& block = mine(index)[random.below(options_.buffers)];
      release(index, block);
      acquire(index, block, random, round);
    }
  }

  // Workers are out of step by a part of the distance between two frees, so that frees come evenly.
  void free_all(std::size_t index) {
    const std::uint64_t step_ns = options_.spread_ms * kNanosecondsPerMillisecond / options_.buffers;
    std::uint64_t due_ns = now_ns() + step_ns * index / options_.workers;
    for (Block& block : mine(index)) {
      while (step_ns != 0 && now_ns() < due_ns) relax();
      due_ns += step_ns;
      release(index, block);
    }
  }

  void acquire(std::size_t index, Block& block, Random& random, std::uint64_t round) {
    block.size = random.between(options_.size_min_kib * kKiB, options_.size_max_kib * kKiB);
    block.tag = mix(random.next() ^ round);
    block.address = must_malloc(block.size);
    touch(block.address, block.size, block.tag);
    workers_[index].live_bytes += block.size;
  }

  void release(std::size_t index, Block& block) {
    check_touch(block.address, block.size, block.tag);
    workers_[index].checksum.add(block.tag ^ block.size);
    workers_[index].live_bytes -= block.size;
    std::free(block.address);
  }

  std::span<Block> mine(std::size_t index) { return blocks_.part(index * options_.buffers, options_.buffers); }

  Session& session_;
  const Options options_;
  Table<Block> blocks_;
  Table<Worker> workers_;
  Barrier barrier_;
  Team team_;
  // Counts the rounds whose spinning is over.
  std::atomic<std::uint64_t> spin_{0};
  std::uint64_t freed_ns_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--workers", options.workers, 1, 256, "worker threads"),
      integer("--buffers", options.buffers, 1, 1024, "buffers that each worker holds"),
      integer("--size-min-kib", options.size_min_kib, 1, 1 << 20, "smallest buffer in KiB"),
      integer("--size-max-kib", options.size_max_kib, 1, 1 << 20, "largest buffer in KiB"),
      integer("--replacements", options.replacements, 0, 1'000'000, "buffers replaced by each worker in a round"),
      integer("--rounds", options.rounds, 1, 10'000, "rounds; with one, the idle time is watched instead"),
      integer("--settle-ms", options.settle_ms, 0, 60'000,
              "least milliseconds of rest before a round's point; 0 for none"),
      integer("--spread-ms", options.spread_ms, 0, 60'000, "milliseconds over which a worker's frees are spread"),
      integer("--idle-ms", options.idle_ms, 0, 60'000, "milliseconds that one round's end is watched"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Workers churn big buffers, free them and spin.", table, argc, argv);
  if (options.size_max_kib < options.size_min_kib) fail_usage("--size-max-kib must not be below --size-min-kib");
  Session session(TIDEMARK_WORKLOAD);
  Buffers buffers(session, options);
  const Checksum checksum = buffers.run();
  return session.end(checksum.value(), buffers.operations());
}
