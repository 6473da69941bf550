// Blocks with a span of their own: growing, shrinking and moving them, with and without the OS's help.
#include "heap/large.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "books.h"
#include "os/fault.h"
#include "os/os.h"

namespace ebb::test {
namespace {

void write_ends(char* p, size_t size, char mark) {
  p[0] = mark;
  p[size / 2] = mark;
  p[size - 1] = mark;
}
bool has_ends(const char* p, size_t size, char mark) { return p[0] == mark && p[size / 2] == mark && p[size - 1] == mark; }

char* allocate_large_block(size_t size) { return static_cast<char*>(ebb_malloc(size)); }

TEST(Large, GrowingStepByStepKeepsContentsAndMovesSeldom) {
  size_t before = spans_after_collect();
  size_t size = 100 * KiB;
  char* p = allocate_large_block(size);
  write_ends(p, size, 'x');
  int moves = 0;
  while (size < 200 * MiB) {
    size_t larger = size + size / 64 + 4096;
    char* q = static_cast<char*>(ebb_realloc(p, larger));
    ASSERT_NE(q, nullptr);
    moves += q != p;
    ASSERT_TRUE(has_ends(q, size, 'x')) << size;
    write_ends(q, larger, 'x');
    p = q;
    size = larger;
  }
  EXPECT_LE(moves, 80) << "of some 490 steps";
  ebb_free(p);
  EXPECT_EQ(spans_after_collect(), before);
}

// Vectors that grow by turns lie in each other's way.
TEST(Large, BlocksThatGrowByTurnsMoveSeldom) {
  size_t before = spans_after_collect();
  constexpr int kVectors = 8;
  char* vectors[kVectors];
  size_t size = 100 * KiB;
  for (char*& p : vectors) write_ends(p = allocate_large_block(size), size, 'y');
  int moves = 0;
  while (size < 4 * MiB) {
    size_t larger = size + 4 * KiB;
    for (char*& p : vectors) {
      char* q = static_cast<char*>(ebb_realloc(p, larger));
      ASSERT_NE(q, nullptr);
      moves += q != p;
      ASSERT_TRUE(has_ends(q, size, 'y')) << size;
      write_ends(q, larger, 'y');
      p = q;
    }
    size = larger;
  }
  EXPECT_LE(moves, 17 * kVectors) << "a factor of 1.25 each, of 41";
  for (char* p : vectors) ebb_free(p);
  EXPECT_EQ(spans_after_collect(), before);
}

TEST(Large, RoomToGrowIsNoPartOfTheBlock) {
  char* p = allocate_large_block(100 * KiB);
  char* behind = allocate_large_block(1 * MiB);
  write_ends(p, 100 * KiB, 'z');
  char* q = static_cast<char*>(ebb_realloc(p, 110 * KiB));
  EXPECT_TRUE(has_ends(q, 100 * KiB, 'z'));
  EXPECT_EQ(ebb_usable_size(q), large_usable(110 * KiB));
  ebb_free(q);
  ebb_free(behind);
}

TEST(Large, GrowsWhereItStandsIntoFreeNeighbours) {
  char* p = allocate_large_block(1 * MiB);
  write_ends(p, 1 * MiB, 'a');
  char* behind = allocate_large_block(3 * MiB);
  ebb_free(behind);
  char* q = static_cast<char*>(ebb_realloc(p, 2 * MiB));
  EXPECT_TRUE(has_ends(q, 1 * MiB, 'a'));
  EXPECT_TRUE(q == p || behind < p || behind > p + 2 * MiB);
  ebb_free(q);
}

TEST(Large, ShrinkingGivesTheTailBack) {
  char* p = allocate_large_block(64 * MiB);
  memset(p, 1, 64 * MiB);
  size_t dirty = books().dirty_bytes;
  char* q = static_cast<char*>(ebb_realloc(p, 1 * MiB));
  EXPECT_EQ(q, p);
  EXPECT_LE(ebb_usable_size(q), 1 * MiB + 4 * KiB);
  EXPECT_GE(books().dirty_bytes - dirty, 62 * MiB);
  ebb_free(q);
}

TEST(Large, MovedByCopyWhereTheOsCannotMovePages) {
  for (const char* refused : {"move_pages", "renew", "purge", "nothing"}) {
    static const char* g_refused;
    g_refused = refused;
    os::g_fault_hook = [](const char* call, const void*, size_t) { return strcmp(call, g_refused) == 0; };
    size_t before = spans_after_collect();
    char* p = allocate_large_block(6 * MiB);
    char* wall = allocate_large_block(6 * MiB);  // nobody grows where it stands
    write_ends(p, 6 * MiB, 'k');
    char* q = static_cast<char*>(ebb_realloc(p, 40 * MiB));
    ASSERT_NE(q, nullptr);
    EXPECT_TRUE(has_ends(q, 6 * MiB, 'k')) << refused;
    write_ends(q, 40 * MiB, 'l');
    ebb_free(wall);
    ebb_free(q);
    EXPECT_EQ(spans_after_collect(), before) << refused;
    os::g_fault_hook = nullptr;
    EXPECT_TRUE(arenas_are_valid());
  }
}

// Whatever has become of the memory: purged, refused to be purged, moved away.
TEST(Large, CallocIsZeroWhateverTheMemoryWas) {
  for (bool is_refusing : {false, true}) {
    if (is_refusing) {
      os::g_fault_hook = [](const char* call, const void*, size_t) { return strcmp(call, "purge") == 0 || strcmp(call, "renew") == 0; };
    }
    for (size_t size : {80 * KiB, 300 * KiB, 5 * MiB, 33 * MiB}) {
      char* p = allocate_large_block(size);
      memset(p, 0xEE, size);
      ebb_free(p);
      if (size == 300 * KiB) ebb_collect(true);
      char* q = static_cast<char*>(ebb_calloc(1, size));
      ASSERT_NE(q, nullptr);
      EXPECT_TRUE(q[0] == 0 && memcmp(q, q + 1, size - 1) == 0) << size << (is_refusing ? ", refused" : "");
      ebb_free(q);
    }
    os::g_fault_hook = nullptr;
  }
}

TEST(Large, CallocClearsOnlyWhatWasUsed) {
  constexpr size_t kSize = 900 * KiB;
  char* p = allocate_large_block(kSize);
  memset(p, 1, kSize);
  ebb_free(p);
  spans_after_collect();  // clean now
  char* used = allocate_large_block(100 * KiB);
  memset(used, 1, 100 * KiB);
  ebb_free(used);
  char* q = static_cast<char*>(ebb_calloc(1, kSize));
  EXPECT_TRUE(q < used + 100 * KiB && used < q + kSize) << "what was used is a part of it";
  EXPECT_LE(os::resident_bytes(q - reinterpret_cast<uintptr_t>(q) % os::page_bytes(), kSize), 256 * KiB);
  for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(q[i], 0) << i;
  ebb_free(q);
}

TEST(Large, BlocksStartAtVaryingCacheLines) {
  std::set<uintptr_t> starts;
  std::vector<void*> blocks;
  for (int i = 0; i < 32; ++i) {
    blocks.push_back(ebb_malloc(1 * MiB));
    starts.insert(reinterpret_cast<uintptr_t>(blocks.back()) % 4096);
  }
  EXPECT_GE(starts.size(), 8u);
  for (void* p : blocks) ebb_free(p);
}

TEST(Large, AlignmentUpToAGibibyte) {
  for (size_t alignment = 64 * KiB; alignment <= 1 * GiB; alignment *= 2) {
    char* p = static_cast<char*>(ebb_aligned_alloc(alignment, 100000));
    ASSERT_NE(p, nullptr) << alignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u);
    write_ends(p, 100000, 'z');
    p = static_cast<char*>(ebb_aligned_realloc(p, alignment, 300000));
    ASSERT_NE(p, nullptr) << alignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u);
    EXPECT_TRUE(has_ends(p, 100000, 'z'));
    ebb_free(p);
  }
}

}  // namespace
}  // namespace ebb::test
