// Calls that make no sense: debug and secure builds stop with a report, others refuse them; nothing is corrupted.
#include <errno.h>

#include "arena/cage.h"
#include "base/bits.h"
#include "heaps/contents.h"
#include "heaps/worker.h"

namespace ebb::test {
namespace {

// `call` must be refused: it returns true when it was, with errno EINVAL.
#if defined(EBB_DEBUG) || defined(EBB_SECURE)
#define EXPECT_REFUSED(call, reason) EXPECT_DEATH((void)(call), reason)
#else
#define EXPECT_REFUSED(call, reason) \
  do {                               \
    errno = 0;                       \
    EXPECT_FALSE(call);              \
    EXPECT_EQ(errno, EINVAL);        \
  } while (0)
#endif

class HeapMisuse : public testing::Test {
 protected:
  // A child that is forked here would have none of the test's threads.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void expect_all_is_well() {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all = hold_many(heap, 100);
  std::vector<Held> others = hold_many(ebb_heap_main(), 100, 5000);
  expect_intact(all);
  expect_intact(others);
  free_all(&others);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST_F(HeapMisuse, TheMainHeapNeverEnds) {
  EXPECT_REFUSED(ebb_heap_destroy(ebb_heap_main()), "destroy of heap .*: it is the main heap");
  EXPECT_REFUSED(ebb_heap_delete(ebb_heap_main()), "delete of heap .*: it is the main heap");
  EXPECT_REFUSED(ebb_heap_set_limit(ebb_heap_main(), 1000, nullptr, nullptr), "the main heap has no limit");
  expect_all_is_well();
}

TEST_F(HeapMisuse, AHeapEndsOnce) {
  ebb_heap_t* heap = ebb_heap_new();
  hold_many(heap, 50);
  ASSERT_TRUE(ebb_heap_destroy(heap));
  EXPECT_REFUSED(ebb_heap_destroy(heap), "it is no live heap: it was ended before");
  EXPECT_REFUSED(ebb_heap_delete(heap), "it is no live heap");
  EXPECT_REFUSED(ebb_heap_malloc(heap, 10) != nullptr, "allocation of heap .*: it is no live heap");
  EXPECT_REFUSED(ebb_heap_calloc(heap, 10, 1) != nullptr, "no live heap");
  EXPECT_REFUSED(ebb_heap_set_default(heap) != nullptr, "no live heap");
  ebb_heap_stats_t stats;
  EXPECT_REFUSED(ebb_heap_stats_get(heap, &stats, sizeof(stats)), "no live heap");
  expect_all_is_well();
}

TEST_F(HeapMisuse, NullIsNoHeap) {
  EXPECT_REFUSED(ebb_heap_destroy(nullptr), "it is NULL");
  EXPECT_REFUSED(ebb_heap_malloc(nullptr, 10) != nullptr, "it is NULL");
  EXPECT_REFUSED(ebb_heap_contains(nullptr, nullptr), "contains of heap .*: it is NULL");
  auto visitor = [](ebb_heap_t*, const ebb_heap_area_t*, void*, void*) { return true; };
  EXPECT_REFUSED(ebb_heap_visit(nullptr, visitor, nullptr), "visit of heap .*: it is NULL");
}

TEST_F(HeapMisuse, WhatIsLookedAtMayNotBeNull) {
  ebb_heap_t* heap = ebb_heap_new();
  errno = 0;
  EXPECT_FALSE(ebb_heap_visit(heap, nullptr, nullptr));
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_FALSE(ebb_heap_stats_get(heap, nullptr, sizeof(ebb_heap_stats_t)));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

// Handles of anything else: blocks, memory inside the allocator's own, addresses where nothing is.
class NoHandle : public HeapMisuse, public testing::WithParamInterface<int> {
 protected:
  NoHandle() : heap_(ebb_heap_new()), block_(ebb_heap_malloc(heap_, 5000)), large_(ebb_malloc(3 * MiB)) {}
  ~NoHandle() override {
    EXPECT_TRUE(ebb_heap_destroy(heap_));
    ebb_free(large_);
  }
  void* address() {
    char* of_heap = reinterpret_cast<char*>(heap_);
    char* slice = reinterpret_cast<char*>(align_down(reinterpret_cast<uintptr_t>(of_heap), kSliceBytes));
    switch (GetParam()) {
      case 0: return block_;
      case 1: return static_cast<char*>(large_) + 2 * MiB;
      case 2: return &local_;
      case 3: return reinterpret_cast<void*>(64);
      case 4: return of_heap + kCacheLine;
      case 5: return slice + kSliceBytes - kCacheLine;
      case 6: return g_cage.base;                      // the table
      default: return g_cage.base + g_cage.size - 64;  // never handed out
    }
  }

 private:
  ebb_heap_t* heap_;
  void* block_;
  void* large_;
  int local_ = 0;
};

TEST_P(NoHandle, IsNoHeap) {
  auto* heap = static_cast<ebb_heap_t*>(address());
  ebb_heap_stats_t stats;
  EXPECT_REFUSED(ebb_heap_destroy(heap), "destroy of heap .*: it is no heap");
  EXPECT_REFUSED(ebb_heap_delete(heap), "it is no heap");
  EXPECT_REFUSED(ebb_heap_calloc(heap, 1, 5) != nullptr, "it is no heap");
  EXPECT_REFUSED(ebb_heap_realloc(heap, this, 5) != nullptr, "it is no heap");
  EXPECT_REFUSED(ebb_heap_set_default(heap) != nullptr, "it is no heap");
  EXPECT_REFUSED(ebb_heap_set_limit(heap, 5, nullptr, nullptr), "it is no heap");
  EXPECT_REFUSED(ebb_heap_stats_get(heap, &stats, sizeof(stats)), "it is no heap");
  EXPECT_REFUSED(ebb_heap_contains(heap, this), "it is no heap");
}

TEST_P(NoHandle, IsNoSubprocess) {
  auto* world = static_cast<ebb_subproc_t*>(address());
  ebb_heap_stats_t stats;
  EXPECT_REFUSED(ebb_subproc_enter(world), "it is no live sub-process");
  EXPECT_REFUSED(ebb_subproc_destroy(world), "it is no live sub-process");
  EXPECT_REFUSED(ebb_subproc_stats_get(world, &stats, sizeof(stats)), "it is no live sub-process");
  EXPECT_EQ(ebb_subproc_current(), nullptr);
}

TEST_P(NoHandle, IsNoArena) {
  auto arena = static_cast<ebb_arena_t>(address());
  size_t bytes = 1;
  EXPECT_EQ(ebb_arena_area(arena, &bytes), nullptr);
  EXPECT_EQ(bytes, 0u);
  EXPECT_FALSE(ebb_arena_contains(arena, this));
  EXPECT_REFUSED(ebb_arena_release(arena), "it is no live arena");
  EXPECT_REFUSED(ebb_heap_new_in(arena) != nullptr, "it is no live arena");
}

INSTANTIATE_TEST_SUITE_P(Addresses, NoHandle, testing::Range(0, 8));

TEST_F(HeapMisuse, ReallocOfABlockOfAnotherHeap) {
  ebb_heap_t* one = ebb_heap_new();
  ebb_heap_t* two = ebb_heap_new();
  Held held = hold(two, 100, 1);
  Held large = hold(two, 200000, 2);
  Held mains = hold(ebb_heap_main(), 100, 3);
  int local = 0;
  EXPECT_REFUSED(ebb_heap_realloc(one, held.bytes, 500) != nullptr, "realloc in heap .* which is not a block of it");
  EXPECT_REFUSED(ebb_heap_realloc(one, large.bytes, 500000) != nullptr, "not a block of it");
  EXPECT_REFUSED(ebb_heap_realloc(one, mains.bytes, 500) != nullptr, "not a block of it");
  EXPECT_REFUSED(ebb_heap_realloc(one, &local, 500) != nullptr, "not in memory of this allocator");
  for (const Held& each : {held, large, mains}) EXPECT_TRUE(each.is_intact());
  ebb_free(mains.bytes);
  EXPECT_TRUE(ebb_heap_destroy(one));
  EXPECT_TRUE(ebb_heap_destroy(two));
  expect_all_is_well();
}

TEST_F(HeapMisuse, ReallocOfABlockOfAnotherSubprocess) {
  ebb_subproc_t* world = ebb_subproc_new();
  ebb_heap_t* heap = ebb_heap_new();
  ASSERT_TRUE(ebb_subproc_enter(world));
  Held held = hold(ebb_heap_main(), 100, 1);
  ASSERT_TRUE(ebb_subproc_enter(nullptr));
  EXPECT_REFUSED(ebb_heap_realloc(heap, held.bytes, 500) != nullptr, "not a block of it");
  EXPECT_TRUE(held.is_intact());
  EXPECT_TRUE(ebb_subproc_destroy(world));
  EXPECT_REFUSED(ebb_subproc_destroy(world), "it is no live sub-process");
  EXPECT_REFUSED(ebb_subproc_enter(world), "it is no live sub-process");
  EXPECT_TRUE(ebb_heap_destroy(heap));
  expect_all_is_well();
}

TEST_F(HeapMisuse, AnotherThreadsDefaultStays) {
  ebb_heap_t* heap = ebb_heap_new();
  Worker user;
  user.run([heap] { ebb_heap_set_default(heap); });
  EXPECT_REFUSED(ebb_heap_destroy(heap), "another thread's default heap");
  EXPECT_REFUSED(ebb_heap_delete(heap), "another thread's default heap");
  Held held{};
  user.run([&] { held = {static_cast<unsigned char*>(ebb_malloc(100)), 100, 9}; });
  EXPECT_EQ(ebb_heap_of(held.bytes), heap);
  user.end();  // a thread that is gone has none
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST_F(HeapMisuse, TheOwnDefaultMayEnd) {
  ebb_heap_t* heap = ebb_heap_new();
  ebb_heap_set_default(heap);
  void* p = ebb_malloc(10);
  EXPECT_EQ(ebb_heap_of(p), heap);
  EXPECT_TRUE(ebb_heap_destroy(heap));
  void* q = ebb_malloc(10);
  EXPECT_EQ(ebb_heap_of(q), ebb_heap_main());
  ebb_free(q);
}

}  // namespace
}  // namespace ebb::test
