// lru_cache: threads share a bounded cache of blocks of mixed sizes.
//
// Like the block cache of a database: a thread inserts a block of 4 to 32 KiB, small ones more often, in
// the shard that its key falls in; when the shard is over its bound the oldest blocks of it are freed,
// mostly ones that another thread allocated. The live bytes stay within the bound, and so should the
// resident memory. Between rounds the series gets a point.
#include <pthread.h>

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

constexpr std::size_t kShards = 16;
constexpr std::size_t kSizeMin = 4 * kKiB;
constexpr std::size_t kSizeMax = 32 * kKiB;

struct Options {
  std::uint64_t threads = 8;
  std::uint64_t bound_mib = 256;
  std::uint64_t inserts = 20'000;
  std::uint64_t rounds = 20;
  std::uint64_t seed = 1;
};

// Smaller sizes more often: the smaller of two draws.
std::size_t draw_size(Random& random) {
  const std::uint64_t one = random.between(kSizeMin, kSizeMax);
  const std::uint64_t other = random.between(kSizeMin, kSizeMax);
  return one < other ? one : other;
}

// A ring of blocks, oldest first, under a lock of its own.
struct Shard {
  alignas(64) pthread_mutex_t lock;
  std::uint64_t first;
  std::uint64_t count;
  std::uint64_t live_bytes;
  Checksum checksum;
};

class LruCache {
 public:
  LruCache(Session& session, const Options& options)
      : session_(session),
        options_(options),
        shard_bound_(options.bound_mib * kMiB / kShards),
        ring_(shard_bound_ / kSizeMin + 1),
        shards_(kShards),
        blocks_(kShards * ring_),
        barrier_(options.threads + 1) {
    for (Shard& shard : shards_) pthread_mutex_init(&shard.lock, nullptr);
  }

  Checksum run() {
    auto body = [this](std::size_t index) { insert_rounds(index); };
    team_.start(options_.threads, body);
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      barrier_.meet();
      std::uint64_t live_bytes = 0;
      for (const Shard& shard : shards_) live_bytes += shard.live_bytes;
      session_.checkpoint(round, "round", live_bytes);
    }
    session_.end_region();
    team_.join();
    Checksum all;
    for (std::size_t index = 0; index < kShards; ++index) {
      while (shards_[index].count != 0) evict(index);
      all.merge(shards_[index].checksum);
    }
    return all;
  }

 private:
  void insert_rounds(std::size_t index) {
    Random random(options_.seed, index);
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      {
        const ThreadRegion region;
        for (std::uint64_t step = 0; step < options_.inserts; ++step) {
          Block block{nullptr, draw_size(random), random.next()};
          block.address = must_malloc(block.size);
          touch(block.address, block.size, block.tag);
          insert(random.below(kShards), block);
        }
      }
      barrier_.meet();
    }
  }

  void insert(std::size_t index, const Block& block) {
    Shard& shard = shards_[index];
    pthread_mutex_lock(&shard.lock);
    while (shard.live_bytes + block.size > shard_bound_) evict(index);
    blocks_[index * ring_ + (shard.first + shard.count++) % ring_] = block;
    shard.live_bytes += block.size;
    pthread_mutex_unlock(&shard.lock);
  }

  // Needs the shard's lock, or that no thread runs.
  void evict(std::size_t index) {
    Shard& shard = shards_[index];
    Block& oldest = blocks_[index * ring_ + shard.first++ % ring_];
    --shard.count;
    shard.live_bytes -= oldest.size;
    shard.checksum.add(oldest.tag ^ oldest.size);
    check_touch(oldest.address, oldest.size, oldest.tag);
    std::free(oldest.address);
  }

  Session& session_;
  const Options options_;
  const std::size_t shard_bound_;
  const std::size_t ring_;
  Table<Shard> shards_;
  Table<Block> blocks_;
  Barrier barrier_;
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, 64, "threads that insert"),
      integer("--bound-mib", options.bound_mib, 1, 1 << 20, "MiB of blocks in the cache at most"),
      integer("--inserts", options.inserts, 1, 1'000'000'000, "blocks that each thread inserts in a round"),
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads share a bounded cache of blocks.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  LruCache workload(session, options);
  const Checksum checksum = workload.run();
  return session.end(checksum.value(), options.threads * options.rounds * options.inserts);
}
