// release: the latency of malloc and free while much memory is being given back.
//
// Workers do small and medium work and keep the time of every pair. Meanwhile the main thread frees
// thousands of large blocks and asks the allocator to give them back. An allocator that returns memory
// under a lock stops everybody for as long as it takes: `pair_ns_max` and `pair_ns_p999` show it. How many
// pairs a worker does before the release ends differs from run to run; each does at least `--pairs`, and
// only those make the checksum.
#include <atomic>
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

namespace {

using namespace tidemark;

constexpr std::size_t kLargeBytes = 1 * kMiB;
constexpr std::size_t kMediumBytes = 300 * kKiB;
// One pair in so many is of the medium size.
constexpr std::uint64_t kMediumEvery = 64;
// Blocks that a worker holds at any time.
constexpr std::size_t kHeld = 16;

struct Options {
  std::uint64_t workers = 4;
  std::uint64_t fill_mib = 2048;
  std::uint64_t pairs = 100'000;
  std::uint64_t seed = 1;
};

struct Worker {
  Latency latency;
  Checksum checksum;
};

class Release {
 public:
  Release(Session& session, const Options& options)
      : session_(session),
        options_(options),
        large_(options.fill_mib * kMiB / kLargeBytes),
        workers_(options.workers),
        barrier_(options.workers + 1) {}

  Checksum run() {
    Random random(options_.seed);
    for (Block& block : large_) {
      block = {must_malloc(kLargeBytes), kLargeBytes, random.next()};
      touch(block.address, block.size, block.tag);
    }
    session_.checkpoint(0, "filled", large_.size() * kLargeBytes);
    auto body = [this](std::size_t index) { work(index); };
    team_.start(options_.workers, body);
    Checksum all;
    session_.begin_region();
    barrier_.meet();
    for (Block& block : large_) {
      check_touch(block.address, block.size, block.tag);
      all.add(block.tag);
      std::free(block.address);
    }
    session_.adapter().collect(true);
    released_.store(true, std::memory_order_release);
    team_.join();
    session_.end_region();
    session_.checkpoint(0, "freed", 0);
    for (const Worker& worker : workers_) all.merge(worker.checksum);
    return all;
  }

  Latency latency() {
    Latency all;
    for (const Worker& worker : workers_) all.merge(worker.latency);
    return all;
  }

 private:
  void work(std::size_t index) {
    Random random(options_.seed, index + 1);
    Worker& worker = workers_[index];
    Block held[kHeld] = {};
    barrier_.meet();
    const ThreadRegion region;
    for (std::uint64_t pair = 0; pair < options_.pairs || !released_.load(std::memory_order_acquire); ++pair) {
      const std::size_t size = pair % kMediumEvery == 0 ? kMediumBytes : random.between(kMinStampedBytes, kKiB);
      const std::uint64_t tag = random.next();
      Block& oldest = held[pair % kHeld];
      const std::uint64_t begin = now_ns();
      if (oldest.address != nullptr) free_stamped(oldest);
      oldest = make_stamped(size, tag);
      worker.latency.add(now_ns() - begin);
      if (pair < options_.pairs) worker.checksum.add(tag ^ size);
    }
    for (Block& block : held) {
      if (block.address != nullptr) free_stamped(block);
    }
  }

  Session& session_;
  const Options options_;
  Table<Block> large_;
  Table<Worker> workers_;
  Barrier barrier_;
  Team team_;
  std::atomic<bool> released_{false};
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--workers", options.workers, 1, 64, "threads that allocate and free meanwhile"),
      integer("--fill-mib", options.fill_mib, 1, 1 << 20, "MiB that are given back"),
      integer("--pairs", options.pairs, 1, 1'000'000'000, "pairs that each worker does at least"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Allocates while much memory is given back.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD, {.collect = true});
  Release workload(session, options);
  const Checksum checksum = workload.run();
  const Latency latency = workload.latency();
  return session.end(checksum.value(), options.workers * options.pairs,
                     {{"pair_ns_p50", latency.percentile_ns(500)},
                      {"pair_ns_p999", latency.percentile_ns(999)},
                      {"pair_ns_max", latency.maximum_ns()}});
}
