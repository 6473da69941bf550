// Random histories of an arena against the model, by fixed seeds: a failure names the seed that repeats it.
#include <gtest/gtest.h>

#include <random>

#include "arena_machine.h"

namespace ebb::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 1500;
#else
constexpr int kSteps = 4000;
#endif

void run(uint32_t slices, uint32_t skew, Begins begins, unsigned seed) {
  std::mt19937 random(seed);
  ArenaMachine machine(slices, skew, begins, [&random](uint32_t bound) { return static_cast<uint32_t>(random() % bound); });
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(machine.step()) << machine.error() << " at step " << step << " of seed " << seed;
  }
}

TEST(ArenaMachine, SmallRangeIsUsedUpAndCoalesced) {
  for (unsigned seed = 1; seed <= 6; ++seed) run(96, 0, Begins::kReserved, seed);
}

TEST(ArenaMachine, RangeOfManyBins) {
  for (unsigned seed = 11; seed <= 13; ++seed) run(3000, 0, Begins::kReserved, seed);
}

TEST(ArenaMachine, RangeThatStartsOffEveryAlignment) {
  for (unsigned seed = 21; seed <= 23; ++seed) run(900, 333, Begins::kReserved, seed);
}

TEST(ArenaMachine, CommittedMemory) {
  for (unsigned seed = 31; seed <= 33; ++seed) run(500, 7, Begins::kZeroed, seed);
}

TEST(ArenaMachine, MemoryOfUnknownContents) {
  for (unsigned seed = 41; seed <= 43; ++seed) run(500, 7, Begins::kUsedBefore, seed);
}

}  // namespace
}  // namespace ebb::test
