// classes: many size classes in use at once.
//
// A table of sizes from 16 bytes to 32 KiB, each a little larger than the last, so that every size class
// of every allocator is met; a few blocks of each are alive, and any of them may be replaced next. What
// an allocator keeps for each class adds up here.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/session.h"
#include "common/table.h"

namespace {

using namespace tidemark;

struct Options {
  std::uint64_t iterations = 200'000;
  std::uint64_t size_max = 32 * kKiB;
  std::uint64_t alive = 4;
  std::uint64_t seed = 1;
};

// The next size: 16 bytes or a sixteenth more, whichever is larger. No allocator here has finer classes.
std::size_t next_size(std::size_t size) { return size + (size / 16 > 16 ? size / 16 : 16); }

std::size_t size_count(const Options& options) {
  std::size_t count = 0;
  for (std::size_t size = kMinStampedBytes; size <= options.size_max; size = next_size(size)) ++count;
  return count;
}

std::uint64_t fill_table(Table<Block>& blocks, Random& random, const Options& options) {
  std::uint64_t live_bytes = 0;
  std::size_t index = 0;
  for (std::size_t size = kMinStampedBytes; size <= options.size_max; size = next_size(size)) {
    for (std::uint64_t copy = 0; copy < options.alive; ++copy) {
      blocks[index++] = make_stamped(size, random.next());
      live_bytes += size;
    }
  }
  return live_bytes;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--iterations", options.iterations, 1, 10'000'000'000, "blocks that are replaced"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 26, "largest size in bytes"),
      integer("--alive", options.alive, 1, 10'000, "blocks of each size alive at once"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Keeps blocks of many size classes.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Table<Block> blocks(size_count(options) * options.alive);
  Random random(options.seed);
  const std::uint64_t live_bytes = fill_table(blocks, random, options);
  Checksum checksum;
  session.begin_region();
  for (std::uint64_t step = 0; step < options.iterations; ++step) {
    Block& block = blocks[random.below(blocks.size())];
    checksum.add(block.tag ^ block.size);
    free_stamped(block);
    block = make_stamped(block.size, random.next());
  }
  session.end_region();
  session.checkpoint(0, "round", live_bytes);
  for (Block& block : blocks) {
    checksum.add(block.tag ^ block.size);
    free_stamped(block);
  }
  return session.end(checksum.value(), options.iterations);
}
