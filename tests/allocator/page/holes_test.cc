// Holes: what is given back, that it is really gone, and that nothing alive goes with it.
#include <gtest/gtest.h>

#include <cstring>

#include "os/fault.h"
#include "page/remote.h"
#include "page_bench.h"

namespace ebb::test {
namespace {

class Holes : public testing::TestWithParam<size_t> {
 protected:
  // A page with all its blocks handed out and written.
  void fill_all() {
    page_carve(page(), page()->capacity);
    while (Block* block = bench_.pop()) memset(static_cast<void*>(block), 0x3C, page()->block_bytes);
  }
  Page* page() { return bench_.page(); }
  size_t page_bytes() { return size_t{page()->slices} << kSliceShift; }
  size_t resident() { return os::resident_bytes(page()->start, page_bytes()); }

  PageBench bench_{GetParam()};
};

TEST_P(Holes, APageWithoutLiveBlocksGoesBackWhole) {
  fill_all();
  for (uint32_t i = 0; i < page()->capacity; ++i) bench_.push_local(bench_.block(i));
  EXPECT_GT(page_punch_holes(page()), 0u);
  EXPECT_TRUE(page_is_valid(page()));
  EXPECT_EQ(resident(), 0u);
  EXPECT_EQ(page()->free, nullptr);
  EXPECT_EQ(page()->hole_blocks, page()->carved);
}

TEST_P(Holes, OneLiveBlockKeepsItsOwnOsPagesOnly) {
  fill_all();
  uint32_t kept = page()->capacity / 2;
  for (uint32_t i = 0; i < page()->capacity; ++i) {
    if (i != kept) bench_.push_local(bench_.block(i));
  }
  page_punch_holes(page());
  EXPECT_TRUE(page_is_valid(page()));
  // Long pages have a bit for several OS pages at once.
  size_t unit = max_of(os::page_bytes(), page_bytes() / 128);
  size_t begin = align_down(size_t{kept} * page()->block_bytes, unit);
  size_t end = align_up((size_t{kept} + 1) * page()->block_bytes, unit);
  EXPECT_EQ(resident(), min_of(end, page_bytes()) - begin);
  const char* bytes = reinterpret_cast<const char*>(bench_.block(kept));
  for (size_t i = 0; i < page()->block_bytes; ++i) ASSERT_EQ(bytes[i], 0x3C) << i;
}

TEST_P(Holes, PunchingTwiceGivesNothingTheSecondTime) {
  fill_all();
  for (uint32_t i = 1; i < page()->capacity; ++i) bench_.push_local(bench_.block(i));
  page_punch_holes(page());
  EXPECT_EQ(page_punch_holes(page()), 0u);
  EXPECT_TRUE(page_is_valid(page()));
}

TEST_P(Holes, BlocksComeBackAHoleAtATimeWithoutTouchingTheOthers) {
  fill_all();
  for (uint32_t i = 0; i < page()->capacity; ++i) bench_.push_local(bench_.block(i));
  page_punch_holes(page());
  size_t before = resident();
  page_fill_hole(page());
  ASSERT_NE(page()->free, nullptr);
  // Linking the blocks of one hole touches the OS pages in which they begin, and no other.
  size_t most = max_of(align_up(page()->block_bytes, os::page_bytes()), page_bytes() / 128) + os::page_bytes();
  EXPECT_LE(resident() - before, most);
  uint32_t count = 0;
  do {
    while (bench_.pop() != nullptr) ++count;
    if (page()->hole_blocks != 0) page_fill_hole(page());
  } while (page()->free != nullptr);
  EXPECT_EQ(count, page()->capacity);
}

// What the OS refuses is not believed to be gone, nor lost for allocation.
TEST_P(Holes, ARefusalLosesNoBlock) {
  fill_all();
  for (uint32_t i = 1; i < page()->capacity; ++i) bench_.push_local(bench_.block(i));
  os::g_fault_hook = [](const char* call, const void*, size_t) { return strcmp(call, "purge") == 0; };
  EXPECT_EQ(page_punch_holes(page()), 0u);
  os::g_fault_hook = nullptr;
  EXPECT_TRUE(page_is_valid(page()));
  uint32_t count = 1;
  do {
    while (bench_.pop() != nullptr) ++count;
    if (page()->hole_blocks != 0) page_fill_hole(page());
  } while (page()->free != nullptr);
  EXPECT_EQ(count, page()->capacity);
}

INSTANTIATE_TEST_SUITE_P(BlockBytes, Holes, testing::Values(64, 640, 1024, 4096, 5120, 8192, 16384, 32768, 65536),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace ebb::test
