// calloc_large: big zeroed blocks of which little is used.
//
// Fresh memory from the OS is zero already; clearing it again costs time and makes all of it resident.
// Each round callocs blocks, checks zeros at the start, the end and a few pages between, writes on a part
// of the pages, looks at the resident memory and frees. From the second round on the memory is used.
#include <cstdint>
#include <cstdlib>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/session.h"
#include "common/table.h"

namespace {

using namespace tidemark;

constexpr std::size_t kProbeBytes = 64;
constexpr std::uint64_t kProbes = 8;

struct Options {
  std::uint64_t rounds = 10;
  std::uint64_t blocks = 16;
  std::uint64_t size_min_kib = 256;
  std::uint64_t size_max_kib = 16384;
  std::uint64_t touch_percent = 10;
  std::uint64_t seed = 1;
};

void probe_zero(const Block& block, Random& random) {
  const char* bytes = static_cast<const char*>(block.address);
  check_zero(bytes, kProbeBytes);
  check_zero(bytes + block.size - kProbeBytes, kProbeBytes);
  for (std::uint64_t probe = 0; probe < kProbes; ++probe) {
    check_zero(bytes + random.below(block.size - kProbeBytes), kProbeBytes);
  }
}

std::size_t used_part(const Block& block, const Options& options) {
  const std::size_t part = block.size / 100 * options.touch_percent;
  return part < sizeof block.tag ? sizeof block.tag : part;
}

std::uint64_t build(Table<Block>& blocks, Random& random, const Options& options) {
  std::uint64_t live_bytes = 0;
  for (Block& block : blocks) {
    block.size = random.between(options.size_min_kib * kKiB, options.size_max_kib * kKiB);
    block.tag = random.next();
    block.address = std::calloc(1, block.size);
    if (block.address == nullptr) fail_broken("the allocator returned no memory for a zeroed block");
    probe_zero(block, random);
    touch(block.address, used_part(block, options), block.tag);
    live_bytes += block.size;
  }
  return live_bytes;
}

Checksum run(Session& session, const Options& options) {
  Table<Block> blocks(options.blocks);
  Random random(options.seed);
  Checksum checksum;
  session.begin_region();
  for (std::uint64_t round = 0; round < options.rounds; ++round) {
    const std::uint64_t live_bytes = build(blocks, random, options);
    session.checkpoint(round, "peak", live_bytes);
    for (Block& block : blocks) {
      check_touch(block.address, used_part(block, options), block.tag);
      checksum.add(block.tag ^ block.size);
      std::free(block.address);
    }
  }
  session.end_region();
  session.checkpoint(options.rounds, "freed", 0);
  return checksum;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--rounds", options.rounds, 1, 100'000, "rounds"),
      integer("--blocks", options.blocks, 1, 100'000, "blocks alive at once"),
      integer("--size-min-kib", options.size_min_kib, 1, 1 << 20, "smallest block in KiB"),
      integer("--size-max-kib", options.size_max_kib, 1, 1 << 20, "largest block in KiB"),
      integer("--touch-percent", options.touch_percent, 0, 100, "per cent of each block that is written"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Zeroed big blocks of which little is used.", table, argc, argv);
  if (options.size_max_kib < options.size_min_kib) fail_usage("--size-max-kib must not be below --size-min-kib");
  Session session(TIDEMARK_WORKLOAD);
  const Checksum checksum = run(session, options);
  return session.end(checksum.value(), options.rounds * options.blocks);
}
