// Random histories of heaps, sub-processes and arenas.
#include "heaps/heap_machine.h"

#include <gtest/gtest.h>

#include <random>

namespace ebb::test {
namespace {

class HeapHistory : public testing::TestWithParam<unsigned> {};

TEST_P(HeapHistory, MatchesTheModel) {
  std::mt19937 random(GetParam());
  HeapMachine machine([&random](uint32_t bound) { return static_cast<uint32_t>(random() % bound); });
  for (int step = 0; step < 600; ++step) {
    ASSERT_TRUE(machine.step()) << "seed " << GetParam() << ", step " << step << ": " << machine.error();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, HeapHistory, testing::Range(1u, 9u));

}  // namespace
}  // namespace ebb::test
