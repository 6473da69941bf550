// server: bursts of allocations for each request, a session cache that stays.
//
// Worker threads serve requests. A request reads into a buffer of some KiB, builds a tree of small nodes
// and a few strings, frees all of it in a different order, and now and then leaves a response in the
// worker's cache in place of the oldest. The sizes are skewed: most are small, some are large.
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

constexpr std::size_t kNodesMin = 20;
constexpr std::size_t kNodesMax = 200;
constexpr std::size_t kBufferMin = 4 * kKiB;
constexpr std::size_t kBufferMax = 64 * kKiB;
// One request in so many leaves its response in the cache.
constexpr std::uint64_t kCachedStep = 4;

struct Options {
  std::uint64_t threads = 2;
  std::uint64_t requests = 20'000;
  std::uint64_t cache = 2000;
  std::uint64_t rounds = 10;
  std::uint64_t seed = 1;
};

// Three quarters below 128 bytes, most of the rest below 1 KiB, one in 64 up to 16 KiB.
std::size_t node_size(std::uint64_t draw) {
  const std::uint64_t kind = draw >> 58;
  if (kind < 48) return 16 + Random::scale(draw, 112);
  if (kind < 63) return 128 + Random::scale(draw, 896);
  return kKiB + Random::scale(draw, 15 * kKiB);
}

struct Worker {
  Checksum checksum;
  std::uint64_t operations;
  std::uint64_t cache_next;
  std::uint64_t live_bytes;
};

class Server {
 public:
  Server(Session& session, const Options& options)
      : session_(session),
        options_(options),
        cache_(options.threads * options.cache),
        nodes_(options.threads * kNodesMax),
        workers_(options.threads),
        barrier_(options.threads + 1) {}

  Checksum run() {
    auto body = [this](std::size_t index) { serve_rounds(index); };
    team_.start(options_.threads, body);
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      barrier_.meet();
      std::uint64_t live_bytes = 0;
      for (const Worker& worker : workers_) live_bytes += worker.live_bytes;
      session_.checkpoint(round, "round", live_bytes);
    }
    session_.end_region();
    team_.join();
    Checksum all;
    for (const Worker& worker : workers_) all.merge(worker.checksum);
    for (Block& block : cache_) {
      if (block.address == nullptr) continue;
      all.add(block.tag);
      free_stamped(block);
    }
    return all;
  }

  std::uint64_t operations() {
    std::uint64_t sum = 0;
    for (const Worker& worker : workers_) sum += worker.operations;
    return sum;
  }

 private:
  void serve_rounds(std::size_t index) {
    Random random(options_.seed, index);
    Worker& worker = workers_[index];
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      barrier_.meet();
      {
        const ThreadRegion region;
        for (std::uint64_t request = 0; request < options_.requests; ++request) serve(index, worker, random);
      }
      barrier_.meet();
    }
  }

  void serve(std::size_t index, Worker& worker, Random& random) {
    Block buffer = make_stamped(random.between(kBufferMin, kBufferMax), random.next());
    const std::size_t count = random.between(kNodesMin, kNodesMax);
    const std::span<Block> nodes = nodes_.part(index * kNodesMax, count);
    for (Block& node : nodes) {
      const std::uint64_t draw = random.next();
      node = make_stamped(node_size(draw), draw);
    }
    if (random.below(kCachedStep) == 0) remember(index, worker, random);
    // First every other node, then the rest backwards: neither a stack nor a queue.
    for (std::size_t node = 0; node < count; node += 2) release(worker, nodes[node]);
    for (std::size_t node = count / 2; node-- != 0;) release(worker, nodes[2 * node + 1]);
    release(worker, buffer);
    worker.operations += count + 1;
  }

  void remember(std::size_t index, Worker& worker, Random& random) {
    Block& place = cache_[index * options_.cache + worker.cache_next++ % options_.cache];
    if (place.address != nullptr) {
      worker.live_bytes -= place.size;
      release(worker, place);
    }
    const std::uint64_t draw = random.next();
    place = make_stamped(node_size(draw) * 4, draw);
    worker.live_bytes += place.size;
    ++worker.operations;
  }

  static void release(Worker& worker, Block& block) {
    worker.checksum.add(block.tag);
    free_stamped(block);
  }

  Session& session_;
  const Options options_;
  Table<Block> cache_;
  Table<Block> nodes_;
  Table<Worker> workers_;
  Barrier barrier_;
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, 64, "threads that serve"),
      integer("--requests", options.requests, 1, 1'000'000'000, "requests of each thread in a round"),
      integer("--cache", options.cache, 1, 10'000'000, "responses that each thread keeps"),
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Serves requests in bursts of allocations.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Server server(session, options);
  const Checksum checksum = server.run();
  return session.end(checksum.value(), server.operations());
}
