// A page that is carved further while it has holes: the first new block begins in the OS page in which the last
// old one ends, so that OS page must not be a hole.
#include <gtest/gtest.h>

#include <set>

#include "arena/cage.h"
#include "heap/heap.h"
#include "heap/process.h"
#include "os/os.h"
#include "page/page.h"

namespace ebb {
namespace {

TEST(HoleCarving, BlocksCarvedBehindAHoleAreHandedOutOnce) {
  ASSERT_TRUE(process_start());
  bool zero = false;
  Slice* span = take_span({1}, kSliceBytes, &zero);
  ASSERT_NE(span, nullptr);
  constexpr size_t kBytes = 640;
  Page* page = page_make(span, class_of(kBytes), &g_main_heap, zero);
  ASSERT_EQ(page->block_bytes, kBytes);
  page_carve(page, 10);  // 6400 bytes: the second OS page holds the end of block 9 and will hold block 10
  // All blocks but the first are free, so that second OS page has no live block.
  Block* live = page->free;
  page->free = live->next;
  page->countdown = 1;
  page_punch_holes(page);
  ASSERT_TRUE(page_is_valid(page));
  page_carve(page, 10);
  ASSERT_TRUE(page_is_valid(page));
  std::set<Block*> seen{live};
  for (;;) {
    while (page->free != nullptr) {
      Block* block = page->free;
      page->free = block->next;
      ++page->countdown;
      EXPECT_TRUE(seen.insert(block).second) << "handed out twice";
    }
    if (page->hole_blocks == 0) break;
    page_fill_hole(page);
    ASSERT_NE(page->free, nullptr);
  }
  EXPECT_EQ(seen.size(), size_t{page->carved});
  page->countdown = 0;
  page_unmake(page);
  arena_of(page)->give(page);
}

}  // namespace
}  // namespace ebb
