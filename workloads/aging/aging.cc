// aging: threads hand their live set to a successor and exit.
//
// Like a server whose workers are replaced: each generation inherits blocks that threads long gone
// allocated, replaces a part of them at random, and passes all of it on. The live set ages: its blocks
// come from ever more threads, and most frees are of somebody else's blocks.
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

struct Options {
  std::uint64_t threads = 2;
  std::uint64_t generations = 20;
  std::uint64_t blocks = 2000;
  std::uint64_t replaced = 5000;
  std::uint64_t size_min = 16;
  std::uint64_t size_max = 1024;
  std::uint64_t seed = 1;
};

struct Lineage {
  Checksum checksum;
  std::uint64_t live_bytes;
};

class Aging {
 public:
  Aging(Session& session, const Options& options)
      : session_(session), options_(options), blocks_(options.threads * options.blocks), lineages_(options.threads) {}

  Checksum run() {
    session_.begin_region();
    for (std::uint64_t generation = 0; generation < options_.generations; ++generation) {
      auto body = [this, generation](std::size_t index) { live(index, generation); };
      team_.start(options_.threads, body);
      team_.join();
      std::uint64_t live_bytes = 0;
      for (const Lineage& lineage : lineages_) live_bytes += lineage.live_bytes;
      session_.checkpoint(generation, "round", live_bytes);
    }
    session_.end_region();
    Checksum all;
    for (const Lineage& lineage : lineages_) all.merge(lineage.checksum);
    for (Block& block : blocks_) {
      all.add(block.tag ^ block.size);
      free_stamped(block);
    }
    return all;
  }

 private:
  // Each generation takes over the set of a neighbouring lineage, so blocks wander between them too.
  void live(std::size_t index, std::uint64_t generation) {
    const ThreadRegion region;
    const std::size_t lineage = (index + generation) % options_.threads;
    Random random(options_.seed, generation * options_.threads + index);
    const std::span<Block> mine = blocks_.part(lineage * options_.blocks, options_.blocks);
    Lineage& account = lineages_[lineage];
    if (generation == 0) {
      for (Block& block : mine) acquire(block, random, account);
    }
    for (std::uint64_t step = 0; step < options_.replaced; ++step) {
      Block& block = mine[random.below(mine.size())];
      account.checksum.add(block.tag ^ block.size);
      account.live_bytes -= block.size;
      free_stamped(block);
      acquire(block, random, account);
    }
  }

  void acquire(Block& block, Random& random, Lineage& account) {
    block = make_stamped(random.between(options_.size_min, options_.size_max), random.next());
    account.live_bytes += block.size;
  }

  Session& session_;
  const Options options_;
  Table<Block> blocks_;
  Table<Lineage> lineages_;
  Team team_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--threads", options.threads, 1, 64, "threads of one generation"),
      integer("--generations", options.generations, 1, 100'000, "generations"),
      integer("--blocks", options.blocks, 1, 10'000'000, "blocks in each thread's live set"),
      integer("--replaced", options.replaced, 0, 1'000'000'000, "blocks that a thread replaces in its life"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Threads hand their live set to a successor.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD);
  Aging aging(session, options);
  const Checksum checksum = aging.run();
  return session.end(checksum.value(), options.threads * (options.blocks + options.generations * options.replaced));
}
