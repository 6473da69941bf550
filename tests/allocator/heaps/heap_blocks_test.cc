// What a program does with a heap while it lives.
#include <errno.h>
#include <sys/mman.h>

#include <set>
#include <thread>

#include "arena/cage.h"
#include "base/units.h"
#include "heaps/contents.h"
#include "heaps/worker.h"

namespace ebb::test {
namespace {

TEST(HeapBlocks, BelongToTheirHeap) {
  ebb_heap_t* one = ebb_heap_new();
  ebb_heap_t* two = ebb_heap_new();
  for (size_t size : {size_t{0}, size_t{1}, size_t{200}, size_t{5000}, size_t{40000}, size_t{200000}, 3 * MiB}) {
    void* p = ebb_heap_malloc(one, size);
    void* q = ebb_heap_malloc(two, size);
    void* r = ebb_malloc(size);
    EXPECT_EQ(ebb_heap_of(p), one);
    EXPECT_EQ(ebb_heap_of(q), two);
    EXPECT_EQ(ebb_heap_of(r), ebb_heap_main());
    EXPECT_TRUE(ebb_heap_contains(one, p));
    EXPECT_FALSE(ebb_heap_contains(two, p));
    EXPECT_TRUE(ebb_is_owned(p));
    ebb_free(q);
    ebb_free(r);
  }
  int local;
  EXPECT_EQ(ebb_heap_of(&local), nullptr);
  EXPECT_FALSE(ebb_is_owned(nullptr));
  EXPECT_TRUE(ebb_heap_destroy(one));
  EXPECT_TRUE(ebb_heap_destroy(two));
}

// Wherever memory comes from: the cage, an arena within it, a program's mapping.
TEST(HeapBlocks, AreFoundByAnyAddressInThem) {
  void* mapping = mmap(nullptr, 64 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ebb_arena_t reserved, adopted;
  ASSERT_TRUE(ebb_arena_reserve(64 * MiB, 0, &reserved));
  ASSERT_TRUE(ebb_arena_adopt(mapping, 64 * MiB, EBB_ARENA_COMMITTED | EBB_ARENA_ZERO | EBB_ARENA_EXCLUSIVE, &adopted));
  for (ebb_heap_t* heap : {ebb_heap_new(), ebb_heap_new_in(reserved), ebb_heap_new_in(adopted)}) {
    // What was there leaves entries that are stale inside of what comes next.
    std::vector<void*> before;
    for (int i = 0; i < 300; ++i) before.push_back(ebb_heap_malloc(heap, 30000));
    for (void* p : before) ebb_free(p);
    for (size_t size : {size_t{40}, size_t{5000}, size_t{30000}, size_t{100000}, 3 * MiB, 20 * MiB + 5}) {
      char* p = static_cast<char*>(ebb_heap_malloc(heap, size));
      char* q = static_cast<char*>(ebb_heap_malloc(heap, size));
      for (size_t i = 0; i < size; i += 1 + size / 1000) ASSERT_EQ(ebb_heap_of(p + i), heap) << size << " at " << i;
      EXPECT_EQ(ebb_heap_of(p + size - 1), heap);
      ebb_collect(true);
      EXPECT_TRUE(ebb_heap_contains(heap, p + size / 2));
      ebb_free(p);
      EXPECT_TRUE(ebb_is_owned(q + size / 2));
      EXPECT_TRUE(size < MiB || !ebb_is_owned(p + size / 2)) << "it was freed";
      ebb_free(q);
    }
    ASSERT_TRUE(ebb_heap_destroy(heap));
  }
  for (uintptr_t in_cage = 0; in_cage < g_cage.size; in_cage += g_cage.size / 1000) {
    ASSERT_TRUE(ebb_heap_of(g_cage.base + in_cage) == nullptr || in_cage < g_cage.size / 100);
  }
  EXPECT_TRUE(ebb_arena_release(reserved));
  EXPECT_TRUE(ebb_arena_release(adopted));
  munmap(mapping, 64 * MiB);
}

TEST(HeapBlocks, AreAsThoseOfMalloc) {
  ebb_heap_t* heap = ebb_heap_new();
  for (size_t size : {size_t{1}, size_t{24}, size_t{4000}, size_t{60000}, size_t{100000}, 2 * MiB}) {
    // Used memory first, so that zeroing is not left to the OS.
    void* used = ebb_heap_malloc(heap, size);
    memset(used, 0xAB, size);
    ebb_free(used);
    unsigned char* zeroed = static_cast<unsigned char*>(ebb_heap_calloc(heap, 1, size));
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(zeroed[i], 0);
    for (size_t alignment = 16; alignment <= 256 * KiB; alignment *= 4) {
      void* aligned = ebb_heap_aligned_alloc(heap, alignment, size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % alignment, 0u);
      EXPECT_EQ(ebb_heap_of(aligned), heap);
      EXPECT_GE(ebb_usable_size(aligned), size);
    }
  }
  char* text = ebb_heap_strdup(heap, "ebb");
  EXPECT_STREQ(text, "ebb");
  errno = 0;
  EXPECT_EQ(ebb_heap_calloc(heap, SIZE_MAX / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ebb_heap_malloc(heap, SIZE_MAX), nullptr);
  errno = 0;
  EXPECT_EQ(ebb_heap_aligned_alloc(heap, 48, 100), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapBlocks, StayInTheirHeapWhenResized) {
  ebb_heap_t* heap = ebb_heap_new();
  size_t size = 10;
  unsigned char* p = static_cast<unsigned char*>(ebb_heap_realloc(heap, nullptr, size));
  memset(p, 7, size);
  for (size_t larger : {size_t{100}, size_t{3000}, size_t{50000}, size_t{90000}, size_t{1000000}, size_t{9000000},
                        size_t{200000}, size_t{66000}, size_t{1000}, size_t{20}}) {
    p = static_cast<unsigned char*>(ebb_heap_realloc(heap, p, larger));
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(ebb_heap_of(p), heap);
    for (size_t i = 0; i < std::min(size, larger); ++i) ASSERT_EQ(p[i], 7);
    memset(p, 7, larger);
    size = larger;
  }
  EXPECT_EQ(stats_of(heap).live_blocks, 1u);
  EXPECT_EQ(ebb_heap_realloc(heap, p, 0), nullptr);
  EXPECT_EQ(stats_of(heap).live_blocks, 0u);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapBlocks, TheMainHeapIsAHeap) {
  ebb_heap_t* heap = ebb_heap_main();
  void* p = ebb_heap_malloc(heap, 100);
  EXPECT_EQ(ebb_heap_of(p), heap);
  p = ebb_heap_realloc(heap, p, 100000);
  EXPECT_EQ(ebb_heap_of(p), heap);
  EXPECT_GE(stats_of(heap).live_bytes, 100000u);
  ebb_free(p);
}

TEST(HeapBlocks, MallocUsesTheDefaultHeapOfTheThread) {
  ebb_heap_t* heap = ebb_heap_new();
  EXPECT_EQ(ebb_heap_set_default(heap), ebb_heap_main());
  void* small = ebb_malloc(100);
  void* large = ebb_malloc(300000);
  EXPECT_EQ(ebb_heap_of(small), heap);
  EXPECT_EQ(ebb_heap_of(large), heap);
  void* others = nullptr;
  std::thread([&others] { others = ebb_malloc(100); }).join();
  EXPECT_EQ(ebb_heap_of(others), ebb_heap_main());
  // Parking does not forget it.
  ebb_park_begin();
  ebb_park_end();
  EXPECT_EQ(ebb_heap_of(ebb_malloc(50)), heap);
  ebb_park_begin();
  EXPECT_EQ(ebb_heap_of(ebb_heap_malloc(heap, 50)), heap);
  ebb_park_end();
  EXPECT_EQ(ebb_heap_set_default(ebb_heap_main()), heap);
  void* again = ebb_malloc(100);
  EXPECT_EQ(ebb_heap_of(again), ebb_heap_main());
  ebb_free(again);
  ebb_free(others);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

// Many threads in many heaps at once; each heap's blocks stay apart and whole.
TEST(HeapBlocks, ManyThreadsUseManyHeaps) {
  constexpr size_t kThreads = 6, kHeaps = 40, kBlocks = 60;
  std::vector<ebb_heap_t*> heaps;
  for (size_t i = 0; i < kHeaps; ++i) heaps.push_back(ebb_heap_new());
  std::vector<std::vector<Held>> held(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kBlocks; ++i) {
        for (size_t h = 0; h < kHeaps; ++h) held[t].push_back(hold(heaps[h], 16 + (i * 131 + h) % 600, t * 1000 + i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < kThreads; ++t) {
    expect_intact(held[t]);
    for (size_t i = 0; i < held[t].size(); ++i) ASSERT_EQ(ebb_heap_of(held[t][i].bytes), heaps[i % kHeaps]);
  }
  for (ebb_heap_t* heap : heaps) {
    EXPECT_EQ(stats_of(heap).live_blocks, kThreads * kBlocks);
    EXPECT_TRUE(ebb_heap_destroy(heap));
  }
}

TEST(HeapBlocks, CollectGivesUpWhatTheThreadKeeps) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all = hold_many(heap, 500);
  free_all(&all);
  EXPECT_GT(stats_of(heap).span_bytes, 0u);
  ebb_heap_collect(heap, false);
  EXPECT_EQ(stats_of(heap).span_bytes, 0u);
  EXPECT_EQ(stats_of(heap).charged_bytes, 0u);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapBlocks, AHeapIsCheap) {
  ebb_heap_t* heap = ebb_heap_new();
  ASSERT_NE(ebb_heap_malloc(heap, 200), nullptr);
  EXPECT_LE(stats_of(heap).metadata_bytes, 4096u);
  EXPECT_EQ(stats_of(heap).span_bytes, kSliceBytes);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

}  // namespace
}  // namespace ebb::test
