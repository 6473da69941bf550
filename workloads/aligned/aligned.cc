// aligned: churn with alignments from 16 bytes to a page and beyond.
//
// Half of the blocks come from aligned_alloc, half from posix_memalign; sizes are small multiples and
// fractions of the alignment. A misaligned block ends the run like a wrong byte does.
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

struct Options {
  std::uint64_t iterations = 200'000;
  std::uint64_t slots = 256;
  std::uint64_t shift_min = 4;
  std::uint64_t shift_max = 12;
  std::uint64_t size_max = 4096;
  std::uint64_t seed = 1;
};

void* must_align(std::size_t alignment, std::size_t size, bool posix) {
  void* block = nullptr;
  if (posix) {
    if (posix_memalign(&block, alignment, size) != 0) block = nullptr;
  } else {
    block = std::aligned_alloc(alignment, size);
  }
  if (block == nullptr) fail_broken("the allocator returned no memory for an aligned request");
  if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) {
    fail_corruption("the allocator returned a block that is not aligned as asked");
  }
  return block;
}

Checksum churn(Table<Block>& slots, const Options& options) {
  Random random(options.seed);
  Checksum checksum;
  for (std::uint64_t pairs = options.iterations; pairs != 0;) {
    const std::uint64_t draw = random.next();
    Block& slot = slots[Random::scale(draw >> 32, slots.size())];
    if (slot.address != nullptr) {
      checksum.add(slot.tag ^ slot.size);
      free_stamped(slot);
      --pairs;
      continue;
    }
    const std::size_t alignment = std::size_t{1} << random.between(options.shift_min, options.shift_max);
    // aligned_alloc wants a multiple of the alignment where ISO C is read strictly; so both get one.
    const std::size_t wanted = kMinStampedBytes + Random::scale(draw, options.size_max);
    slot.size = (wanted + alignment - 1) / alignment * alignment;
    slot.tag = draw;
    slot.address = must_align(alignment, slot.size, (draw & 1) != 0);
    stamp(slot.address, slot.size, slot.tag);
  }
  return checksum;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--iterations", options.iterations, 1, 10'000'000'000, "pairs of allocation and free"),
      integer("--slots", options.slots, 1, 1 << 20, "slots; about half of them are full at any time"),
      integer("--shift-min", options.shift_min, 4, 30, "smallest alignment as a power of two"),
      integer("--shift-max", options.shift_max, 4, 30, "largest alignment as a power of two"),
      integer("--size-max", options.size_max, 1, 1 << 30, "largest size in bytes before rounding up"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Churns blocks of many alignments.", table, argc, argv);
  if (options.shift_max < options.shift_min) fail_usage("--shift-max must not be below --shift-min");
  Session session(TIDEMARK_WORKLOAD);
  Table<Block> slots(options.slots);
  session.begin_region();
  Checksum checksum = churn(slots, options);
  session.end_region();
  std::uint64_t live_bytes = 0;
  for (const Block& slot : slots) live_bytes += slot.address != nullptr ? slot.size : 0;
  session.checkpoint(0, "round", live_bytes);
  for (Block& slot : slots) {
    if (slot.address == nullptr) continue;
    checksum.add(slot.tag ^ slot.size);
    free_stamped(slot);
  }
  return session.end(checksum.value(), options.iterations);
}
