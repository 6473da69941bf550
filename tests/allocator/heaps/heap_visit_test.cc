// Visiting every block of a heap.
#include <map>

#include "arena/arena_list.h"
#include "base/units.h"
#include "heaps/contents.h"
#include "heaps/worker.h"
#include "scavenger/sweep.h"

namespace ebb::test {
namespace {

struct Seen {
  std::map<void*, size_t> blocks;  // and their usable size
  size_t areas = 0, live_said = 0;
  size_t stop_after = SIZE_MAX;
};

bool note(ebb_heap_t*, const ebb_heap_area_t* area, void* block, void* arg) {
  Seen* seen = static_cast<Seen*>(arg);
  if (block == nullptr) {
    ++seen->areas;
    seen->live_said += area->live_blocks;
    return true;
  }
  EXPECT_GE(block, area->start);
  EXPECT_LT(block, static_cast<const char*>(area->start) + area->bytes);
  seen->blocks[block] = area->block_bytes;
  return seen->blocks.size() < seen->stop_after;
}

void expect_exactly(const Seen& seen, const std::vector<Held>& all) {
  EXPECT_EQ(seen.blocks.size(), all.size());
  EXPECT_EQ(seen.live_said, all.size());
  for (const Held& held : all) {
    auto found = seen.blocks.find(held.bytes);
    ASSERT_NE(found, seen.blocks.end()) << held.size;
    EXPECT_EQ(found->second, ebb_usable_size(held.bytes));
  }
}

Seen visit(ebb_heap_t* heap) {
  Seen seen;
  EXPECT_TRUE(ebb_heap_visit(heap, note, &seen));
  return seen;
}

TEST(HeapVisit, SeesEveryLiveBlockOnce) {
  ebb_heap_t* heap = ebb_heap_new();
  EXPECT_TRUE(visit(heap).blocks.empty());
  std::vector<Held> all = hold_many(heap, 1500);
  expect_exactly(visit(heap), all);
  std::vector<Held> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 3 == 0) kept.push_back(all[i]);
    else ebb_free(all[i].bytes);
  }
  expect_exactly(visit(heap), kept);
  expect_intact(kept);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapVisit, SeesBlocksOfOtherThreadsAndNotWhatOthersFreed) {
  ebb_heap_t* heap = ebb_heap_new();
  Worker resting;
  std::vector<Held> all = hold_many(heap, 300);
  resting.run([&] {
    std::vector<Held> more = hold_many(heap, 300, 1000);
    all.insert(all.end(), more.begin(), more.end());
    // Remote frees of the main thread's blocks.
    for (int i = 0; i < 100; ++i) {
      ebb_free(all.front().bytes);
      all.erase(all.begin());
    }
  });
  expect_exactly(visit(heap), all);
  Worker gone;
  gone.run([&] {
    std::vector<Held> more = hold_many(heap, 200, 5000);
    all.insert(all.end(), more.begin(), more.end());
  });
  gone.end();
  expect_exactly(visit(heap), all);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapVisit, PassesHolesOver) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all, kept;
  for (size_t i = 0; i < 4000; ++i) all.push_back(hold(heap, 240, i));
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 250 == 0) kept.push_back(all[i]);
    else ebb_free(all[i].bytes);
  }
  ebb_heap_collect(heap, true);  // punches holes, too
  expect_exactly(visit(heap), kept);
  expect_intact(kept);
  // What lies in holes comes back.
  std::vector<Held> again = hold_many(heap, 2000);
  kept.insert(kept.end(), again.begin(), again.end());
  expect_exactly(visit(heap), kept);
  expect_intact(kept);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapVisit, EndsWhenTheVisitorSaysSo) {
  ebb_heap_t* heap = ebb_heap_new();
  hold_many(heap, 100);
  Seen seen;
  seen.stop_after = 17;
  EXPECT_FALSE(ebb_heap_visit(heap, note, &seen));
  EXPECT_EQ(seen.blocks.size(), 17u);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapVisit, FindsBlocksOfTheMainHeap) {
  std::vector<Held> all = hold_many(ebb_heap_main(), 400);
  Seen seen = visit(ebb_heap_main());
  for (const Held& held : all) EXPECT_TRUE(seen.blocks.count(held.bytes));
  ebb_heap_t* other = ebb_heap_new();
  std::vector<Held> others = hold_many(other, 100);
  seen = visit(ebb_heap_main());
  for (const Held& held : others) EXPECT_FALSE(seen.blocks.count(held.bytes));
  free_all(&all);
  EXPECT_TRUE(ebb_heap_destroy(other));
}

}  // namespace
}  // namespace ebb::test
