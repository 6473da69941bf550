// What malloc, calloc, realloc and free promise, for every size class and beyond.
#include <ebb/ebb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "api/errno_after.h"
#include "api/usable.h"

extern "C" int ebb_header_works_in_c(void);

namespace {

using ebb_test::errno_after;
using ebb_test::opaque;

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kLargestBlock = 64 * kKiB;  // requests above have a span of their own

// Every size class once: the sizes at which ebb_good_size is the size itself; then some large ones.
std::vector<size_t> class_sizes() {
  std::vector<size_t> sizes;
  for (size_t size = 16; size <= kLargestBlock; size = ebb_good_size(size + 1)) sizes.push_back(size);
  return sizes;
}

std::vector<size_t> all_kinds_of_sizes() {
  std::vector<size_t> sizes = class_sizes();
  for (size_t size : {size_t{1}, size_t{17}, kLargestBlock + 1, 100 * kKiB, 300 * kKiB, 1 * kMiB + 1, 5 * kMiB}) {
    sizes.push_back(size);
  }
  return sizes;
}

bool all_bytes_are(const void* p, size_t size, unsigned char value) {
  const unsigned char* bytes = static_cast<const unsigned char*>(p);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

TEST(HeaderTest, WorksInC) { EXPECT_EQ(ebb_header_works_in_c(), 1); }

TEST(MallocTest, EveryBlockIsAlignedDistinctAndLargeEnough) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t size = 0; size <= 70000; size += size < 4096 ? 7 : 1009) {
    char* p = static_cast<char*>(ebb_malloc(size));
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignof(max_align_t), 0u) << size;
    EXPECT_GE(ebb_usable_size(p), size);
    memset(p, static_cast<int>(size % 251), ebb_usable_size(p));
    blocks.emplace_back(p, size);
  }
  for (auto [p, size] : blocks) {
    EXPECT_TRUE(all_bytes_are(p, ebb_usable_size(p), static_cast<unsigned char>(size % 251))) << size;
    ebb_free(p);
  }
}

TEST(MallocTest, ZeroBytesGiveUniqueBlocks) {
  std::set<void*> blocks;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(blocks.insert(ebb_malloc(0)).second);
  EXPECT_EQ(blocks.count(nullptr), 0u);
  for (void* p : blocks) ebb_free(p);
}

TEST(MallocTest, GoodSizeIsWhatUsableSizeWillBe) {
  for (size_t size = 0; size < 3 * kMiB; size += size < 5000 ? 1 : size / 13) {
    void* p = ebb_malloc(size);
    EXPECT_TRUE(ebb_test::is_usable_as_promised(p, size)) << size;
    ebb_free(p);
  }
}

TEST(MallocTest, WasteIsAtMostAnEighthFrom128BytesUp) {
  size_t before = 0;
  for (size_t size = 128; size < 2 * kMiB; size += size < 70000 ? 1 : 977) {
    size_t good = ebb_good_size(size);
    ASSERT_GE(good, size);
    ASSERT_LE(good - size, size / 8) << size;
    ASSERT_GE(good, before) << "good sizes grow with the request";
    before = good;
  }
}

TEST(CallocTest, IsZeroInEveryClassAlsoOfReusedMemory) {
  for (size_t size : all_kinds_of_sizes()) {
    size_t count = size < 4096 ? 4096 / size + 3 : 3;
    std::vector<void*> blocks;
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < count; ++i) {
        void* p = ebb_calloc(1, size);
        ASSERT_TRUE(all_bytes_are(p, size, 0)) << size << " in round " << round;
        memset(p, 0xA5, ebb_usable_size(p));
        blocks.push_back(p);
      }
      for (void* p : blocks) ebb_free(p);
      blocks.clear();
      if (round == 1) ebb_collect(true);
    }
  }
}

TEST(CallocTest, IsZeroBehindEveryKindOfFree) {
  for (size_t size : {size_t{48}, size_t{5000}, 200 * kKiB}) {
    void* plain = memset(ebb_malloc(size), 1, size);
    void* aligned = memset(ebb_aligned_alloc(64, size), 2, size);
    ebb_free_sized(plain, size);
    ebb_free_aligned_sized(aligned, 64, size);
    for (int i = 0; i < 4; ++i) {
      void* p = ebb_calloc(size, 1);
      EXPECT_TRUE(all_bytes_are(p, size, 0)) << size;
      memset(p, 3, size);
      ebb_free(ebb_realloc(p, size * 3));
    }
  }
}

TEST(ReallocTest, NullAllocatesAndZeroFrees) {
  void* p = ebb_realloc(nullptr, 100);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(ebb_realloc(p, 0), nullptr);
  void* empty = ebb_realloc(nullptr, 0);
  EXPECT_NE(empty, nullptr);
  ebb_free(empty);
}

// Grows and shrinks over every kind of block, in all directions; contents up to the smaller usable size stay.
TEST(ReallocTest, KeepsTheUsableBytesBetweenAllKindsOfBlocks) {
  const size_t sizes[] = {1, 16, 100, 1000, 5000, 40000, kLargestBlock, 70000, 300 * kKiB, 3 * kMiB, 20 * kMiB};
  for (size_t from : sizes) {
    for (size_t to : sizes) {
      unsigned char* p = static_cast<unsigned char*>(ebb_malloc(from));
      size_t usable = ebb_usable_size(p);
      for (size_t i = 0; i < usable; ++i) p[i] = static_cast<unsigned char>(i * 7 + i / 4096);
      p = static_cast<unsigned char*>(ebb_realloc(p, to));
      ASSERT_NE(p, nullptr);
      ASSERT_GE(ebb_usable_size(p), to);
      size_t kept = std::min(usable, ebb_usable_size(p));
      for (size_t i = 0; i < kept; ++i) {
        ASSERT_EQ(p[i], static_cast<unsigned char>(i * 7 + i / 4096)) << from << " to " << to << " at " << i;
      }
      ebb_free(p);
    }
  }
}

TEST(ReallocTest, StaysWhileAtLeastHalfIsUsed) {
  for (size_t size : class_sizes()) {
    void* p = ebb_malloc(size);
    EXPECT_EQ(ebb_realloc(p, size / 2 + 1), p) << size;
    p = ebb_realloc(p, size);
    EXPECT_EQ(ebb_usable_size(p), size);
    ebb_free(p);
  }
}

TEST(ReallocTest, ShrinkingGivesMemoryBack) {
  void* p = ebb_malloc(50000);
  p = ebb_realloc(p, 100);
  EXPECT_TRUE(ebb_test::is_usable_as_promised(p, 100));
  ebb_free(p);
  p = ebb_realloc(ebb_malloc(30 * kMiB), 1 * kMiB);
  EXPECT_EQ(ebb_usable_size(p), 1 * kMiB);
  ebb_free(p);
}

TEST(ReallocarrayTest, MultipliesItsArguments) {
  void* p = ebb_reallocarray(nullptr, 30, 40);
  EXPECT_GE(ebb_usable_size(p), 1200u);
  p = ebb_reallocarray(p, 300, 40);
  EXPECT_GE(ebb_usable_size(p), 12000u);
  ebb_free(p);
}

TEST(FreeTest, KeepsErrno) {
  for (size_t size : all_kinds_of_sizes()) {
    void* plain = ebb_malloc(size);
    void* sized = ebb_malloc(size);
    void* aligned = ebb_aligned_alloc(256, size);
    EXPECT_EQ(errno_after(EXDEV, [=] { ebb_free(plain); }), EXDEV);
    EXPECT_EQ(errno_after(EXDEV, [=] { ebb_free_sized(sized, size); }), EXDEV);
    EXPECT_EQ(errno_after(EXDEV, [=] { ebb_free_aligned_sized(aligned, 256, size); }), EXDEV);
  }
  EXPECT_EQ(errno_after(EXDEV, [] { ebb_free(nullptr); }), EXDEV);
}

TEST(FreeTest, IgnoresNull) {
  ebb_free(nullptr);
  ebb_free_sized(nullptr, 10);
  ebb_free_aligned_sized(nullptr, 64, 10);
  EXPECT_EQ(ebb_usable_size(nullptr), 0u);
}

// Debug and secure builds stop with a report; others take the free as it is.
TEST(FreeTest, AWrongSizeOrAlignmentIsReportedInCheckedBuilds) {
  char* p = static_cast<char*>(ebb_malloc(200));
  char* aligned = static_cast<char*>(ebb_aligned_alloc(256, 24));
#if defined(EBB_DEBUG) || defined(EBB_SECURE)
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(ebb_free_sized(p, 5000), "says 5000 bytes, but the block has 208");
  EXPECT_DEATH(ebb_free_sized(p, 20), "says 20 bytes, but the block has 208");
  EXPECT_DEATH(ebb_free_aligned_sized(aligned, 256, 300), "says 300 bytes, but the block has 256");
  EXPECT_DEATH(ebb_free_aligned_sized(aligned, size_t{1} << 40, 24), "says an alignment of 1099511627776");
  EXPECT_DEATH(ebb_free_aligned_sized(aligned, 0, 24), "says an alignment of 0");
#endif
  ebb_free_sized(p, 200);
  ebb_free_aligned_sized(aligned, 256, 24);
  p = static_cast<char*>(ebb_realloc(ebb_malloc(100), 60));
  ebb_free_sized(p, 60);
  ebb_free_sized(ebb_malloc(0), 0);
}

TEST(FreeTest, ABlockIsReusedOnceItIsFree) {
  for (size_t size : class_sizes()) {
    std::set<void*> seen;
    for (int i = 0; i < 100000 && seen.size() == static_cast<size_t>(i); ++i) {
      void* p = opaque(ebb_malloc(size));
      seen.insert(p);
      ebb_free(p);
    }
    EXPECT_LT(seen.size(), 9000u) << "blocks of " << size << " bytes are never used again";
  }
}

}  // namespace
