// Every size up to the largest block: its class, what it wastes, and how it is aligned.
#include "page/size_class.h"

#include <gtest/gtest.h>

#include <set>

#include "heap/large.h"

namespace ebb {
namespace {

TEST(SizeClass, EverySizeGetsTheSmallestClassThatHoldsIt) {
  for (size_t size = 0; size <= kLargestBlock; ++size) {
    size_t cls = class_of(size);
    ASSERT_LT(cls, kClassCount) << size;
    ASSERT_GE(class_bytes(cls), size);
    if (cls > 0) {
      ASSERT_LT(class_bytes(cls - 1), size) << "a smaller class would do";
    }
  }
}

TEST(SizeClass, WasteIsAtMostAnEighthFrom128BytesUp) {
  for (size_t size = 128; size <= kLargestBlock; ++size) {
    size_t waste = class_bytes(class_of(size)) - size;
    ASSERT_LE(waste * 8, size) << size << " bytes waste " << waste;
  }
}

// A power of two with a header before it is a common size.
TEST(SizeClass, FromOneKiBUpWasteIsLessAndAtMostASixteenthBehindAPowerOfTwo) {
  for (size_t size = 1025; size <= kLargestBlock; ++size) {
    size_t waste = class_bytes(class_of(size)) - size;
    ASSERT_LE(waste * 9, size) << size << " bytes waste " << waste;
    if (size - (size_t{1} << floor_log2(size)) == 32) {
      ASSERT_LE(waste * 16, size) << size;
    }
  }
}

// What the smallest requests of a class take, with the OS pages that their blocks lie on and the metadata.
TEST(SizeClass, ResidentMemoryIsAtMostAnEighthMoreFromOneKiBUp) {
  for (size_t cls = class_of(1025); cls < kClassCount; ++cls) {
    size_t bytes = class_bytes(cls), request = class_bytes(cls - 1) + 1;
    size_t blocks = (size_t{class_slices(cls)} << kSliceShift) / bytes;
    std::set<size_t> os_pages;
    for (size_t block = 0; block < blocks; ++block) {
      for (size_t at = block * bytes / 4096; at <= (block * bytes + request - 1) / 4096; ++at) os_pages.insert(at);
    }
    size_t taken = os_pages.size() * 4096 + class_slices(cls) * 2 * kCacheLine;
    EXPECT_LE(taken * 8, blocks * request * 9) << bytes;
  }
}

TEST(SizeClass, SmallSizesWasteLessThanABlockAlignment) {
  for (size_t size = 1; size < 128; ++size) ASSERT_LT(class_bytes(class_of(size)) - size, kBlockAlign) << size;
}

TEST(SizeClass, EveryBlockIsAlignedAndAtLeastEightShareAPage) {
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    EXPECT_EQ(class_bytes(cls) % kBlockAlign, 0u);
    size_t page_bytes = size_t{class_slices(cls)} << kSliceShift;
    EXPECT_GE(page_bytes / class_bytes(cls), 8u) << class_bytes(cls);
    EXPECT_LE(page_bytes / class_bytes(cls), 4096u) << "block numbers have 12 bits";
    // What does not hold a block at the end of a page is waste, too.
    EXPECT_LE(page_bytes % class_bytes(cls) * 8, page_bytes) << class_bytes(cls);
  }
}

TEST(SizeClass, TheTableOfTheFastPathAgrees) {
  ClassTable table = make_class_table();
  for (size_t size = 0; size <= kTableMost; ++size) {
    ASSERT_EQ(table.entry[(size + kBlockAlign - 1) / kBlockAlign], class_of(size)) << size;
  }
  for (size_t size = kTableMost + 1; size <= kLargestBlock; ++size) ASSERT_EQ(medium_class_of(size), class_of(size));
}

TEST(SizeClass, AlignedRequestsGetBlocksThatAreMultiples) {
  for (size_t alignment = kBlockAlign; alignment <= kSliceBytes; alignment *= 2) {
    for (size_t size = 0; size <= kLargestBlock; size += size < 4096 ? 1 : 61) {
      size_t cls = class_of_aligned(alignment, size);
      if (cls == kClassCount) {
        ASSERT_GT(align_up(size, alignment), kLargestBlock);
        continue;
      }
      ASSERT_GE(class_bytes(cls), size);
      ASSERT_EQ(class_bytes(cls) % alignment, 0u) << size << " at " << alignment;
    }
  }
  EXPECT_EQ(class_of_aligned(2 * kSliceBytes, 1), kClassCount);
  EXPECT_EQ(class_of_aligned(16, kLargestBlock + 1), kClassCount);
}

TEST(SizeClass, LargeBlocksWasteAtMostASixteenth) {
  for (size_t size = kLargestBlock + 1; size < 4 * MiB; size += 97) {
    size_t usable = large_usable(size);
    ASSERT_GE(usable, size);
    ASSERT_LE((usable - size) * 16, size) << size;
  }
}

// A page is sparse when a tenth of its OS pages can be expected free: never when full, and for blocks of an OS page
// or more, when a few are free.
TEST(SizeClass, SparseIsAShareOfTheBlocks) {
  for (size_t os_page : {4 * KiB, 16 * KiB, 64 * KiB}) {
    for (size_t cls = 0; cls < kClassCount; ++cls) {
      uint32_t capacity = static_cast<uint32_t>((size_t{class_slices(cls)} << kSliceShift) / class_bytes(cls));
      EXPECT_LT(sparse_blocks(class_bytes(cls), os_page, capacity), capacity) << class_bytes(cls);
    }
    EXPECT_GE(sparse_blocks(os_page, os_page, 16), 12u);
  }
  // Fewer live blocks are needed to fill OS pages that hold more of them.
  EXPECT_GT(sparse_blocks(1024, 4096, 64), sparse_blocks(1024, 65536, 64));
}

}  // namespace
}  // namespace ebb
