// idle_threads: what a thread that holds a few small blocks and sleeps costs in memory.
//
// First the threads exist and have allocated nothing; then each allocates its blocks and sleeps again;
// then all have exited a while ago. The differences in resident memory, divided by the threads, are the metrics:
// `thread_bytes` with the thread itself, `heap_bytes` for what allocating added, `left_bytes` after exit.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/resident.h"
#include "common/session.h"
#include "common/table.h"
#include "common/threads.h"

namespace {

using namespace tidemark;

struct Options {
  std::uint64_t threads = 64;
  std::uint64_t blocks = 16;
  std::uint64_t size_min = 16;
  std::uint64_t size_max = 256;
  std::uint64_t settle_ms = 500;
  std::uint64_t seed = 1;
};

class IdleThreads {
 public:
  IdleThreads(Session& session, const Options& options)
      : session_(session),
        options_(options),
        blocks_(options.threads * options.blocks),
        barrier_(options.threads + 1) {}

  Checksum run() {
    before_ = resident_bytes();
    auto body = [this](std::size_t index) { sleep_and_hold(index); };
    team_.start(options_.threads, body);
    barrier_.meet();  // all run, none has allocated
    started_ = resident_bytes();
    session_.begin_region();
    barrier_.meet();
    barrier_.meet();  // all hold their blocks
    session_.end_region();
    holding_ = resident_bytes();
    std::uint64_t live_bytes = 0;
    for (const Block& block : blocks_) live_bytes += block.size;
    session_.checkpoint(
        0, "idle", live_bytes,
        {{"thread_bytes", per_thread(holding_, before_)}, {"heap_bytes", per_thread(holding_, started_)}});
    barrier_.meet();
    team_.join();
    wait_until_ns(now_ns() + options_.settle_ms * kNanosecondsPerMillisecond);
    exited_ = resident_bytes();
    session_.checkpoint(0, "exited", 0, {{"left_bytes", left_bytes()}});
    Checksum checksum;
    for (const Block& block : blocks_) checksum.add(block.tag ^ block.size);
    return checksum;
  }

  double thread_bytes() const { return per_thread(holding_, before_); }
  double heap_bytes() const { return per_thread(holding_, started_); }
  // libc keeps the stacks of threads that exited; they are not the allocator's.
  double left_bytes() const { return per_thread(exited_, before_); }

 private:
  double per_thread(std::uint64_t after, std::uint64_t before) const {
    return (static_cast<double>(after) - static_cast<double>(before)) / static_cast<double>(options_.threads);
  }

  void sleep_and_hold(std::size_t index) {
    Random random(options_.seed, index);
    const std::span<Block> mine = blocks_.part(index * options_.blocks, options_.blocks);
    barrier_.meet();
    barrier_.meet();
    {
      const ThreadRegion region;
      for (Block& block : mine) {
        block = make_filled(random.between(options_.size_min, options_.size_max), random.next());
      }
    }
    barrier_.meet();
    barrier_.meet();
    for (Block& block : mine) free_filled(block);
  }

  Session& session_;
  const Options options_;
  Table<Block> blocks_;
  Barrier barrier_;
  Team team_;
  std::uint64_t before_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t holding_ = 0;
  std::uint64_t exited_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, Team::kMaxThreads, "threads"),
      integer("--blocks", options.blocks, 1, 100'000, "blocks that each thread holds"),
      integer("--size-min", options.size_min, 1, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, 1, 1 << 24, "largest block in bytes"),
      integer("--settle-ms", options.settle_ms, 0, 60'000, "milliseconds from the exits to the last measurement"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads hold a few blocks and sleep.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD);
  IdleThreads workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.threads * options.blocks,
                     {{"thread_bytes", workload.thread_bytes()},
                      {"heap_bytes", workload.heap_bytes()},
                      {"left_bytes", workload.left_bytes()}});
}
