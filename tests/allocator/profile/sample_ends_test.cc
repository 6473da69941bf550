// Each way in which a sampled block ends is told once.
#include <cstring>
#include <thread>

#include "profile/profiled.h"

namespace {

using ebb::test::kEveryBlock;
using ebb::test::Profiled;

class SampleEnds : public Profiled {
 protected:
  void SetUp() override {
    Profiled::SetUp();
    start(kEveryBlock);
  }
  void* sampled(void* p) {
    EXPECT_TRUE(is_live(p));
    return p;
  }
  void expect_ended(size_t count) {
    EXPECT_EQ(ended(), count);
    EXPECT_EQ(live_count(), taken() - count);
  }
};

TEST_F(SampleEnds, FreedByItsThread) {
  for (size_t size : {10, 500, 40000, 300000}) ebb_free(sampled(ebb_malloc(size)));
  expect_ended(4);
  EXPECT_EQ(live_count(), 0u);
}

TEST_F(SampleEnds, FreedByAnotherThread) {
  void* blocks[] = {sampled(ebb_malloc(100)), sampled(ebb_malloc(100000))};
  std::thread([&] {
    for (void* block : blocks) ebb_free(block);  // has never allocated
  }).join();
  expect_ended(2);
}

TEST_F(SampleEnds, FreedAfterTheEndOfItsThread) {
  void* block = nullptr;
  std::thread([&] { block = ebb_malloc(100); }).join();
  sampled(block);
  ebb_free(block);
  expect_ended(1);
}

TEST_F(SampleEnds, ResizedWithinItsSizeItStays) {
  void* p = sampled(ebb_malloc(100));
  EXPECT_EQ(ebb_realloc(p, 112), p);
  EXPECT_EQ(ebb_realloc(p, 60), p);
  expect_ended(0);
  ebb_free(p);
  expect_ended(1);
}

TEST_F(SampleEnds, ResizedIntoAnotherBlock) {
  char* p = static_cast<char*>(sampled(ebb_malloc(100)));
  memset(p, 7, 100);
  char* q = static_cast<char*>(ebb_realloc(p, 5000));
  EXPECT_EQ(std::string(q, 100), std::string(100, 7));
  sampled(q);
  expect_ended(1);
  ebb_free(q);
  expect_ended(2);
}

TEST_F(SampleEnds, ALargeBlockThatGrowsAndShrinksIsANewOneEachTime) {
  void* p = sampled(ebb_malloc(100000));
  size_t steps = 0;
  for (size_t size : {130000, 3000000, 9000000, 40000000, 200000, 70000}) {
    p = sampled(ebb_realloc(p, size));
    expect_ended(++steps);
  }
  ebb_free(p);
  expect_ended(steps + 1);
}

TEST_F(SampleEnds, WithItsHeap) {
  ebb_heap_t* heap = ebb_heap_new();
  for (size_t size : {10, 10, 500, 100000, 6000000}) sampled(ebb_heap_malloc(heap, size));
  // Moved by its OS pages, where that can be done.
  void* moved = ebb_heap_realloc(heap, ebb_heap_malloc(heap, 5000000), 20000000);
  sampled(moved);
  EXPECT_TRUE(ebb_heap_destroy(heap));
  EXPECT_EQ(live_count(), 0u);
  EXPECT_EQ(ended(), taken());
}

TEST_F(SampleEnds, OutlivesADeletedHeap) {
  ebb_heap_t* heap = ebb_heap_new();
  void* blocks[] = {ebb_heap_malloc(heap, 10), ebb_heap_malloc(heap, 100000)};
  EXPECT_TRUE(ebb_heap_delete(heap));
  for (void* block : blocks) {
    sampled(block);
    EXPECT_EQ(ebb_heap_of(block), ebb_heap_main());
  }
  expect_ended(0);
  for (void* block : blocks) ebb_free(block);
  expect_ended(2);
}

TEST_F(SampleEnds, WithItsSubprocess) {
  ebb_subproc_t* world = ebb_subproc_new();
  ASSERT_TRUE(ebb_subproc_enter(world));
  sampled(ebb_malloc(100));
  sampled(ebb_malloc(100000));
  ASSERT_TRUE(ebb_subproc_enter(nullptr));
  EXPECT_TRUE(ebb_subproc_destroy(world));
  expect_ended(2);
}

TEST_F(SampleEnds, AfterTheProfileWasStopped) {
  void* p = sampled(ebb_malloc(100));
  ebb_profile_stop();
  ebb_free(p);
  expect_ended(1);
}

TEST_F(SampleEnds, HeapVisitorsSeeASampledBlockAsWhatItIs) {
  ebb_heap_t* heap = ebb_heap_new();
  void* block = sampled(ebb_heap_malloc(heap, 100));
  struct Seen {
    void* block;
    size_t count, bytes;
  } seen = {block, 0, 0};
  ebb_heap_visit(
      heap,
      [](ebb_heap_t*, const ebb_heap_area_t* area, void* p, void* arg) {
        Seen* to = static_cast<Seen*>(arg);
        if (p == to->block) ++to->count, to->bytes = area->block_bytes;
        return true;
      },
      &seen);
  EXPECT_EQ(seen.count, 1u);
  EXPECT_EQ(seen.bytes, ebb_usable_size(block));
  EXPECT_EQ(ebb_usable_size(block), ebb_good_size(100));
  ebb_heap_destroy(heap);
}

}  // namespace
