// Every alignment from 1 to 1 GiB, and resizing that keeps it.
#include <ebb/ebb.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "api/usable.h"

namespace {

constexpr size_t kGiB = size_t{1} << 30;

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

TEST(AlignedTest, EveryAlignmentWithEverySizeClass) {
  for (size_t alignment = 1; alignment <= kGiB; alignment *= 2) {
    std::set<void*> blocks;
    for (size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{100}, size_t{4095}, size_t{40000}, size_t{65536},
                        size_t{70000}, size_t{1} << 21}) {
      void* p = ebb_aligned_alloc(alignment, size);
      ASSERT_NE(p, nullptr) << alignment << " " << size;
      EXPECT_EQ(address(p) % alignment, 0u) << alignment << " " << size;
      EXPECT_EQ(address(p) % 16, 0u) << alignment << " " << size;
      ASSERT_GE(ebb_usable_size(p), size);
      static_cast<char*>(p)[0] = 1;
      static_cast<char*>(p)[ebb_usable_size(p) - 1] = 1;
      EXPECT_TRUE(blocks.insert(p).second);
    }
    for (void* p : blocks) ebb_free_aligned_sized(p, alignment, 0);
  }
}

TEST(AlignedTest, ManyBlocksOfOneAlignmentDoNotOverlap) {
  for (size_t alignment : {32, 64, 256, 4096, 65536}) {
    for (size_t size : {1, 24, 100, 3000, 20000}) {
      std::vector<unsigned char*> blocks;
      for (int i = 0; i < 50; ++i) {
        blocks.push_back(static_cast<unsigned char*>(ebb_aligned_alloc(alignment, size)));
        ASSERT_EQ(address(blocks.back()) % alignment, 0u);
        memset(blocks.back(), i, ebb_usable_size(blocks.back()));
      }
      for (int i = 0; i < 50; ++i) {
        for (size_t at = 0; at < ebb_usable_size(blocks[i]); at += 13) ASSERT_EQ(blocks[i][at], i);
        ebb_free(blocks[i]);
      }
    }
  }
}

TEST(AlignedTest, AnAlignmentThatBlocksHaveAnywayCostsNothing) {
  for (size_t size = 1; size < 5000; size += 3) {
    for (size_t alignment : {1, 2, 4, 8, 16}) {
      void* p = ebb_aligned_alloc(alignment, size);
      EXPECT_TRUE(ebb_test::is_usable_as_promised(p, size)) << alignment << " " << size;
      ebb_free(p);
    }
  }
}

// The second of a kind comes off the thread's list, which is looked up another way than the class of the first.
TEST(AlignedTest, ABlockOffTheListIsOfTheClassThatOneFromTheSlowPathIsOf) {
  for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    for (size_t end : {size_t{16}, size_t{128}, size_t{144}, size_t{2048}, size_t{2304}, size_t{65536}}) {
      for (size_t size = end - 1; size <= end + 1; ++size) {
        void* blocks[3];
        for (void*& p : blocks) {
          ASSERT_EQ(ebb_posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, size), 0);
          ASSERT_EQ(address(p) % alignment, 0u) << alignment << " " << size;
          ASSERT_GE(ebb_usable_size(p), size);
          ASSERT_EQ(ebb_usable_size(p), ebb_usable_size(blocks[0])) << alignment << " " << size;
        }
        for (void* p : blocks) ebb_free(p);
      }
    }
  }
}

TEST(AlignedReallocTest, AlignsFromEveryStartingPoint) {
  for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
    // Neighbouring blocks stand at different offsets from the alignment asked for.
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(memset(ebb_malloc(24), i, 24));
    for (size_t i = 0; i < blocks.size(); ++i) {
      unsigned char* p = static_cast<unsigned char*>(ebb_aligned_realloc(blocks[i], alignment, 24 + i * 50));
      ASSERT_NE(p, nullptr);
      ASSERT_EQ(address(p) % alignment, 0u) << alignment;
      ASSERT_GE(ebb_usable_size(p), 24 + i * 50);
      for (size_t at = 0; at < 24; ++at) ASSERT_EQ(p[at], i);
      ebb_free(p);
    }
  }
}

TEST(AlignedReallocTest, KeepsAlignmentAndContentsWhileGrowingAndShrinking) {
  const size_t kAlignment = 4096;
  size_t size = 10;
  unsigned char* p = static_cast<unsigned char*>(ebb_aligned_realloc(nullptr, kAlignment, size));
  ASSERT_NE(p, nullptr);
  memset(p, 0xC3, size);
  for (size_t next : {5000u, 70000u, 3000000u, 12000000u, 70000u, 5000u, 10u}) {
    p = static_cast<unsigned char*>(ebb_aligned_realloc(p, kAlignment, next));
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(address(p) % kAlignment, 0u) << next;
    EXPECT_GE(ebb_usable_size(p), next);
    for (size_t i = 0; i < std::min(size, next); i += 37) ASSERT_EQ(p[i], 0xC3) << next;
    size = next;
    memset(p, 0xC3, size);
  }
  ebb_free(p);
}

TEST(AlignedReallocTest, PlainReallocOfAnAlignedBlockKeepsContents) {
  for (size_t alignment : {64, 4096, 1 << 20}) {
    unsigned char* p = static_cast<unsigned char*>(ebb_aligned_alloc(alignment, 100));
    memset(p, 0x77, 100);
    for (size_t size : {50, 1000, 100000, 5000000, 1000}) {
      p = static_cast<unsigned char*>(ebb_realloc(p, size));
      ASSERT_NE(p, nullptr);
      for (size_t i = 0; i < 50; ++i) ASSERT_EQ(p[i], 0x77) << alignment << " " << size;
    }
    ebb_free(p);
  }
}

}  // namespace
