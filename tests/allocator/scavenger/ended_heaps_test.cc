// The structures of ended heaps are used again, and go back to the OS as free memory does.
#include <gtest/gtest.h>

#include <vector>

#include "driven_scavenger.h"
#include "heap/heap.h"

namespace ebb::test {
namespace {

// The structures of ended heaps: enough for several slices of them.
class EndedHeaps : public DrivenScavenger {
 protected:
  static constexpr size_t kHeaps = 200;
  static constexpr size_t kInSlice = kSliceBytes / sizeof(FirstClassHeap);

  static void make_and_end() {
    std::vector<ebb_heap_t*> heaps;
    for (size_t i = 0; i < kHeaps; ++i) heaps.push_back(ebb_heap_new());
    for (ebb_heap_t* heap : heaps) ASSERT_TRUE(ebb_heap_destroy(heap));
  }
  // Of structures, with the few slices that the allocator keeps of its own.
  static size_t resident_slices() {
    size_t bytes = 0;
    for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
      arena->for_each_used([&bytes](Slice* span) {
        if (span->kind == SliceKind::kMeta) bytes += os::resident_bytes(span->start, size_t{span->slices} << kSliceShift);
      });
    }
    return (bytes + kSliceBytes / 2) / kSliceBytes;
  }
};

TEST_F(EndedHeaps, MakeWayForTheNextOnesWithoutACallOfTheOs) {
  make_and_end();
  size_t resident = resident_slices();
  purges_ = 0;
  for (int round = 0; round < 5; ++round) make_and_end();
  EXPECT_EQ(purges_, 0);
  EXPECT_EQ(resident_slices(), resident);
}

TEST_F(EndedHeaps, AreReturnedByAPassOnceTheyHaveAgedAllButOneSlice) {
  size_t before = resident_slices();
  armings_ = 0;
  make_and_end();
  EXPECT_EQ(armings_, 1);
  size_t resident = resident_slices();
  EXPECT_GE(resident, before + kHeaps / kInSlice - 1);
  for (int quarter = 0; quarter < 4; ++quarter) {
    EXPECT_TRUE(pass()) << "it has to come again";
    EXPECT_EQ(resident_slices(), resident);
    tick();
  }
  EXPECT_FALSE(pass());
  EXPECT_EQ(resident_slices(), before + 1);
  make_and_end();
  EXPECT_EQ(armings_, 2);
  ebb_collect(true);
  EXPECT_EQ(resident_slices(), before) << "a forced purge takes the last one, too";
}

TEST_F(EndedHeaps, ThatTheOsDoesNotTakeLetTheScavengerRest) {
  make_and_end();
  let_time_pass_ms(100);
  size_t resident = resident_slices();
  refuses_purges_ = true;
  EXPECT_FALSE(pass());
  EXPECT_EQ(resident_slices(), resident);
  refuses_purges_ = false;
  make_and_end();
  settle();
  EXPECT_LT(resident_slices() + kHeaps / kInSlice / 2, resident) << "their next end brings them back";
}

}  // namespace
}  // namespace ebb::test
