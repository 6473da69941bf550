// Arithmetic on sizes and bit words, against plain loops.
#include "base/bits.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(Bits, PowersOfTwo) {
  EXPECT_FALSE(is_power_of_two(0));
  for (unsigned shift = 0; shift < 64; ++shift) {
    size_t power = size_t{1} << shift;
    EXPECT_TRUE(is_power_of_two(power)) << power;
    if (shift > 1) {
      EXPECT_FALSE(is_power_of_two(power - 1)) << power - 1;
      EXPECT_FALSE(is_power_of_two(power + 1)) << power + 1;
    }
  }
}

TEST(Bits, AlignedValuesAreTheNearestMultiples) {
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (size_t x = 0; x < 10000; x += 7) {
      size_t down = align_down(x, alignment);
      size_t up = align_up(x, alignment);
      EXPECT_EQ(down, x / alignment * alignment);
      EXPECT_EQ(up, (x + alignment - 1) / alignment * alignment);
      EXPECT_EQ(div_up(x, alignment), up / alignment);
    }
  }
}

TEST(Bits, AlignUpReachesTheLargestRequestWithoutWrapping) {
  size_t most = static_cast<size_t>(PTRDIFF_MAX);
  EXPECT_EQ(align_up(most, size_t{1} << 16), size_t{1} << 63);
  EXPECT_EQ(align_down(SIZE_MAX, size_t{1} << 16), SIZE_MAX - 0xFFFF);
}

TEST(Bits, HighestAndLowestBit) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    uint64_t one = uint64_t{1} << bit;
    EXPECT_EQ(floor_log2(one), bit);
    EXPECT_EQ(lowest_bit(one), bit);
    EXPECT_EQ(floor_log2(one | 1), bit);
    EXPECT_EQ(lowest_bit(one | uint64_t{1} << 63), bit);
    EXPECT_EQ(floor_log2(one | (one - 1)), bit);
  }
}

TEST(Bits, SmallerAndLarger) {
  EXPECT_EQ(min_of(3, 4), 3);
  EXPECT_EQ(min_of(4, 3), 3);
  EXPECT_EQ(max_of(3, 4), 4);
  EXPECT_EQ(max_of(-1, 0), 0);
}

}  // namespace
}  // namespace ebb
