// churn: a full slot is freed, an empty one filled. One thread.
//
// The classic measure of an allocator's fast paths: blocks of random sizes with short, random lives. The
// warm-up is half as many pairs; at its begin every byte is filled and checked. From then on only the first
// word is, so that checking costs a few instructions a pair (none with `--check no`, for the loop's own
// cost).
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
// Pairs of the warm-up whose blocks are filled: enough to meet every slot many times, and few enough that
// the wall clock of the process is the allocator's.
constexpr std::uint64_t kFilledPairsMax = 20'000;

struct Options {
  std::uint64_t iterations = 1'000'000;
  std::uint64_t size_min = 16;
  std::uint64_t size_range = 1024;
  std::uint64_t slots = 256;
  std::uint64_t check = 1;
  std::uint64_t seed = 1;
};

std::size_t filled_part(const Block& block) { return block.size < kFilledBytesMax ? block.size : kFilledBytesMax; }

void fill_and_check(Table<Block>& slots, Random& random, const Options& options, std::uint64_t pairs) {
  while (pairs != 0) {
    const std::uint64_t draw = random.next();
    Block& slot = slots[Random::scale(draw >> 32, slots.size())];
    if (slot.address == nullptr) {
      slot = {nullptr, options.size_min + Random::scale(draw, options.size_range), draw};
      slot.address = must_malloc(slot.size);
      fill(slot.address, filled_part(slot), slot.tag);
    } else {
      check(slot.address, filled_part(slot), slot.tag);
      std::free(slot.address);
      slot.address = nullptr;
      --pairs;
    }
  }
}

// The loop that is counted; `kCheck` compiles the stamps in or out.
template <bool kCheck>
std::uint64_t churn(Table<Block>& slots, Random& random, const Options& options, std::uint64_t pairs) {
  std::uint64_t sum = 0;
  const std::size_t size_min = options.size_min;
  const std::uint64_t size_range = options.size_range;
  while (pairs != 0) {
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

template <bool kCheck>
int run(const Options& options) {
  Session session(TIDEMARK_WORKLOAD);
  Table<Block> slots(options.slots);
  Random random(options.seed);
  Checksum checksum;
  const std::uint64_t warm_pairs = options.iterations / 2;
  const std::uint64_t filled_pairs = !kCheck ? 0 : warm_pairs < kFilledPairsMax ? warm_pairs : kFilledPairsMax;
  fill_and_check(slots, random, options, filled_pairs);
  checksum.add(churn<kCheck>(slots, random, options, warm_pairs - filled_pairs));
  std::uint64_t live_bytes = 0;
  for (const Block& slot : slots) live_bytes += slot.address != nullptr ? slot.size : 0;
  session.checkpoint(0, "warm", live_bytes);
  session.begin_region();
  const std::uint64_t sum = churn<kCheck>(slots, random, options, options.iterations);
  session.end_region();
  checksum.add(sum);
  empty(slots, checksum, kCheck);
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
  return options.check != 0 ? run<true>(options) : run<false>(options);
}
