// Patterns: every wrong byte is found, for every size and density, and the process then ends with code 3.
#include "common/pattern.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/blocks.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kTag = 0x0123456789abcdefu;

using Bytes = std::vector<unsigned char>;

TEST(Pattern, AcceptsWhatItWrote) {
  for (std::size_t size = 1; size <= 100; ++size) {
    Bytes block(size + 8, 0xee);
    fill(block.data(), size, kTag);
    check(block.data(), size, kTag);
    EXPECT_EQ(block[size], 0xee) << "fill wrote behind a block of " << size;
  }
}

TEST(Pattern, FirstWordIsTheTagAtEveryDensity) {
  Bytes block(2 * kTouchStepBytes);
  fill(block.data(), block.size(), kTag);
  EXPECT_EQ(load_word(block.data(), 0), kTag);
  stamp(block.data(), block.size(), kTag + 1);
  EXPECT_EQ(load_word(block.data(), 0), kTag + 1);
  touch(block.data(), block.size(), kTag + 2);
  EXPECT_EQ(load_word(block.data(), 0), kTag + 2);
}

TEST(PatternDeathTest, FindsEveryWrongByte) {
  constexpr std::size_t kSize = 21;  // two words and a tail
  for (std::size_t wrong = 0; wrong < kSize; ++wrong) {
    Bytes block(kSize);
    fill(block.data(), kSize, kTag);
    block[wrong] ^= 0x40;
    const std::string offset = "at offset " + std::to_string(wrong / 8 * 8) + " ";
    EXPECT_EXIT(check(block.data(), kSize, kTag), testing::ExitedWithCode(kExitCorruption), offset);
  }
}

TEST(PatternDeathTest, FindsAnotherBlocksContents) {
  Bytes block(64);
  fill(block.data(), block.size(), kTag);
  EXPECT_EXIT(check(block.data(), block.size(), kTag + 1), testing::ExitedWithCode(kExitCorruption), "of 64 bytes");
}

TEST(PatternDeathTest, StampsGuardBothEnds) {
  Bytes block(40);
  stamp(block.data(), block.size(), kTag);
  check_stamp(block.data(), block.size(), kTag);
  block[39] ^= 1;
  EXPECT_EXIT(check_stamp(block.data(), block.size(), kTag), testing::ExitedWithCode(kExitCorruption), "offset 32");
  block[39] ^= 1;
  block[0] ^= 1;
  EXPECT_EXIT(check_stamp(block.data(), block.size(), kTag), testing::ExitedWithCode(kExitCorruption), "offset 0");
}

TEST(PatternDeathTest, TouchGuardsEveryPage) {
  Bytes block(3 * kTouchStepBytes + 100);
  touch(block.data(), block.size(), kTag);
  check_touch(block.data(), block.size(), kTag);
  block[3 * kTouchStepBytes] ^= 1;
  EXPECT_EXIT(check_touch(block.data(), block.size(), kTag), testing::ExitedWithCode(kExitCorruption), "offset 12288");
}

TEST(PatternDeathTest, ZeroMeansEveryByte) {
  Bytes block(29);
  check_zero(block.data(), block.size());
  for (const std::size_t wrong : {0u, 15u, 28u}) {
    block[wrong] = 1;
    EXPECT_EXIT(check_zero(block.data(), block.size()), testing::ExitedWithCode(kExitCorruption), "at offset");
    block[wrong] = 0;
  }
}

TEST(PatternDeathTest, ASpoiledBlockIsNoLongerWhatItWas) {
  Block block = make_stamped(48, kTag);
  spoil(block.address);
  EXPECT_EXIT(free_stamped(block), testing::ExitedWithCode(kExitCorruption), "offset 0");
  std::free(block.address);
}

}  // namespace
}  // namespace tidemark
