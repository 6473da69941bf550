// churn: a full slot is freed, an empty one filled. One thread.
//
// The classic measure of an allocator's fast paths: blocks of random sizes with short, random lives. The
// warm-up, half as many pairs, fills and checks every byte; the region of interest stamps only the first
// word, so that checking costs two instructions a pair (none with `--check no`, for the loop's own cost).
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

// What is written of a warm-up block; whole large blocks would make the warm-up all there is.
constexpr std::size_t kFilledBytesMax = 4096;

struct Options {
  std::uint64_t iterations = 1'000'000;
  std::uint64_t size_min = 16;
  std::uint64_t size_range = 1024;
  std::uint64_t slots = 256;
  std::uint64_t check = 1;
  std::uint64_t seed = 1;
};

std::size_t filled_part(const Block& block) {
  return block.size < kFilledBytesMax ? block.size : kFilledBytesMax;
}

std::uint64_t warm_up(Table<Block>& slots, Random& random, const Options& options) {
  std::uint64_t live_bytes = 0;
  for (std::uint64_t pairs = options.iterations / 2; pairs != 0;) {
    const std::uint64_t draw = random.next();
    Block& slot = slots[Random::scale(draw >> 32, slots.size())];
    if (slot.address == nullptr) {
      slot = {nullptr, options.size_min + Random::scale(draw, options.size_range), draw};
      slot.address = must_malloc(slot.size);
      fill(slot.address, filled_part(slot), slot.tag);
      live_bytes += slot.size;
    } else {
      check(slot.address, filled_part(slot), slot.tag);
      std::free(slot.address);
      slot.address = nullptr;
      live_bytes -= slot.size;
      --pairs;
    }
  }
  return live_bytes;
}

// The loop that is counted; `kCheck` compiles the stamps in or out.
template <bool kCheck>
std::uint64_t measured(Table<Block>& slots, Random& random, const Options& options) {
  std::uint64_t sum = 0;
  const std::size_t size_min = options.size_min;
  const std::uint64_t size_range = options.size_range;
  for (std::uint64_t pairs = options.iterations; pairs != 0;) {
    const std::uint64_t draw = random.next();
    Block& slot = slots[Random::scale(draw >> 32, slots.size())];
    if (slot.address == nullptr) {
      slot.size = size_min + Random::scale(draw, size_range);
      slot.tag = draw;
      slot.address = must_malloc(slot.size);
      if constexpr (kCheck) store_word(slot.address, 0, draw);
    } else {
      if constexpr (kCheck) check_word(slot.address, slot.size, 0, slot.tag);
      sum += slot.tag;
      std::free(slot.address);
      slot.address = nullptr;
      --pairs;
    }
  }
  return sum;
}

void empty(Table<Block>& slots, Checksum& checksum, bool checked) {
  for (Block& slot : slots) {
    if (slot.address == nullptr) continue;
    if (checked) check_word(slot.address, slot.size, 0, slot.tag);
    checksum.add(slot.tag ^ slot.size);
    std::free(slot.address);
  }
}

int run(const Options& options) {
  Session session(TIDEMARK_WORKLOAD);
  Table<Block> slots(options.slots);
  Random random(options.seed);
  // Without checks no block may be looked at, so the warm-up is the same loop as the measured one.
  std::uint64_t live_bytes = 0;
  if (options.check != 0) {
    live_bytes = warm_up(slots, random, options);
  } else {
    Options half = options;
    half.iterations = options.iterations / 2;
    measured<false>(slots, random, half);
  }
  session.checkpoint(0, "warm", live_bytes);
  session.begin_region();
  const std::uint64_t sum = options.check != 0 ? measured<true>(slots, random, options)
                                               : measured<false>(slots, random, options);
  session.end_region();
  Checksum checksum;
  checksum.add(sum);
  empty(slots, checksum, options.check != 0);
  session.checkpoint(1, "freed", 0);
  return session.end(checksum.value(), options.iterations);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--iterations", options.iterations, 1, 10'000'000'000, "malloc+free pairs that are measured"),
      integer("--size-min", options.size_min, 16, 1 << 30, "smallest block in bytes"),
      integer("--size-range", options.size_range, 1, 1 << 30, "sizes are size-min + r % size-range"),
      integer("--slots", options.slots, 1, 1 << 20, "slots; about half of them are full at any time"),
      choice("--check", options.check, kNoYes, "whether blocks are stamped and checked"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Frees a full slot, fills an empty one.", table, argc, argv);
  return run(options);
}
