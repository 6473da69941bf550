// The end of heaps in the middle of what other threads do, forced by test points.
//
// Without the scavenger's thread, which would pass the points at times of its own: a test's worker does its work.
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "base/bits.h"
#include "heap/heap_lifetime.h"
#include "heaps/contents.h"
#include "heaps/heap_end.h"
#include "heaps/in_child.h"
#include "heaps/worker.h"
#include "os/os.h"
#include "scavenger/sweep.h"
#include "interleaving.h"
#include "test_point_script.h"

namespace ebb::test {
namespace {

class HeapRace : public HeapEnd {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ebb_option_set("scavenger", 0));
    HeapEnd::SetUp();
  }
};

// The thread ends its part of the heap after the end of the heap has seen it, and before it is stopped.
TEST_P(HeapRace, RacingTheExitOfItsThread) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all;
  auto first = std::make_unique<Worker>();
  first->run([&] { all = hold_many(heap, 300); });
  std::thread ender;
  int points = 0;
  {
    AtPoint point("heap.before_freeze", [&] {
      if (++points != 1) return;
      ender = std::thread([&] { first->end(); });
      // It leaves its heaps and then waits for the list of threads, which the end of the heap holds.
      FirstClassHeap* internal = reinterpret_cast<FirstClassHeap*>(heap);
      for (bool gone = false; !gone; std::this_thread::yield()) {
        LockGuard guard(internal->lock);
        gone = internal->parts == nullptr;
      }
    });
    ASSERT_TRUE(end(heap));
  }
  EXPECT_EQ(points, 1);
  ender.join();
  check_and_free(&all);
}

// The scavenger works on a page of the heap: its end waits for that.
TEST_P(HeapRace, WhileTheScavengerPunchesHoles) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all, kept;
  for (size_t i = 0; i < 3000; ++i) all.push_back(hold(heap, 240, i));
  Event claimed, go_on;
  Worker scavenger, ender;
  std::atomic<bool> ended{false};
  {
    std::atomic<int> points{0};
    AtPoint point("holes.claimed", [&] {
      if (points.fetch_add(1) != 0) return;
      claimed.set();
      go_on.wait("the test");
    });
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % 200 == 0) kept.push_back(all[i]);
      else ebb_free(all[i].bytes);
    }
    ebb_heap_collect(heap, false);
    scavenger.start([] { punch_sparse_pages(Punch::kAll); });
    claimed.wait("the scavenger to claim a page");
    ender.start([&] {
      ASSERT_TRUE(end(heap));
      ended = true;
    });
    // A destroy can't be over: the page is not ours to free. (A delete may be: it only changes whose the page is.)
    if (!deletes()) {
      for (int i = 0; i < 1000; ++i) {
        ASSERT_FALSE(ended);
        std::this_thread::yield();
      }
    }
    go_on.set();
    scavenger.wait();
    ender.wait();
  }
  EXPECT_TRUE(ended);
  check_and_free(&kept);
}

INSTANTIATE_TEST_SUITE_P(By, HeapRace, testing::Bool(), [](const auto& instance) { return instance.param ? "Delete" : "Destroy"; });

class HeapDeleteRace : public HeapRace {};

// A free has claimed a page and found its heap; before it has the heap's lock, the heap is deleted and another one
// made of its structure.
TEST_P(HeapDeleteRace, RacingTheFreeThatClaimsAPage) {
  ebb_heap_t* heap = ebb_heap_new();
  Held last{};
  std::thread([&] { last = hold(heap, 200, 1); }).join();
  Page* page = page_of(last.bytes);
  ASSERT_TRUE(is_ownerless(page));
  Worker freer, deleter;
  std::thread::id freer_id;
  freer.run([&] { freer_id = std::this_thread::get_id(); });
  ebb_heap_t* successor = nullptr;
  int points = 0;
  {
    AtPoint point("heap.found", [&] {
      if (std::this_thread::get_id() != freer_id || ++points != 1) return;
      deleter.run([&] {
        ASSERT_TRUE(ebb_heap_delete(heap));
        successor = ebb_heap_new();
      });
    });
    freer.run([&] { ebb_free(last.bytes); });
  }
  EXPECT_EQ(points, 2) << "the free had to look again";
  EXPECT_EQ(successor, heap);
  EXPECT_EQ(stats_of(successor).page_count, 0u);
  EXPECT_EQ(find_slice(last.bytes)->kind == SliceKind::kPage, false) << "the empty page went back";
  EXPECT_TRUE(ebb_heap_destroy(successor));
}

// The free of the last block in a page that a thread was left with finds the thread gone, and the page another's.
TEST_P(HeapDeleteRace, TheLastFreeRacingTheOwnersEnd) {
  ebb_heap_t* heap = ebb_heap_new();
  Worker owner;
  Held last{};
  owner.run([&] { last = hold(heap, 200, 1); });
  ASSERT_TRUE(ebb_heap_delete(heap));
  Interleaving steps;
  steps.hold("free", "page.last_back");
  std::thread freer = steps.run("free", [&] { ebb_free(last.bytes); });
  steps.wait_until_held("free");
  owner.end();
  EXPECT_NE(find_slice(last.bytes)->kind, SliceKind::kPage) << "it gave the page up";
  ebb_heap_t* another = ebb_heap_new();
  std::vector<Held> more = hold_many(another, 200);
  steps.release("free");
  freer.join();
  expect_intact(more);
  ASSERT_TRUE(ebb_heap_destroy(another));
}

// Heaps whose structures fill some slices, so that slices of them go back when all are ended.
class ManyHeaps {
 public:
  ManyHeaps() {
    for (size_t i = 0; i < 100; ++i) all_.push_back(ebb_heap_new());
  }
  ebb_heap_t* one() const { return all_[50]; }
  // Ends all but one() and gives back what they leave.
  void end_others() {
    for (ebb_heap_t* heap : all_) {
      if (heap == one()) continue;
      ASSERT_TRUE(ebb_heap_delete(heap));
    }
    ebb_collect(true);
  }
  // Memory of the structures that stand in the slice of one().
  size_t resident_bytes() const {
    uintptr_t start = align_down(reinterpret_cast<uintptr_t>(one()), kSliceBytes);
    return os::resident_bytes(reinterpret_cast<void*>(start), kSliceBytes);
  }

 private:
  std::vector<ebb_heap_t*> all_;
};

// As above, but the structure's memory has gone back to the OS: its lock reads as zero, which is an open lock.
TEST_P(HeapDeleteRace, RacingTheFreeWhileTheStructureGoesBack) {
  ManyHeaps many;
  Held last{};
  std::thread([&] { last = hold(many.one(), 200, 1); }).join();
  Worker freer, deleter;
  std::thread::id freer_id;
  freer.run([&] { freer_id = std::this_thread::get_id(); });
  int points = 0;
  {
    AtPoint point("heap.found", [&] {
      if (std::this_thread::get_id() != freer_id || ++points != 1) return;
      deleter.run([&] {
        ASSERT_TRUE(ebb_heap_delete(many.one()));
        many.end_others();
      });
      EXPECT_EQ(many.resident_bytes(), 0u);
    });
    freer.run([&] { ebb_free(last.bytes); });
  }
  EXPECT_EQ(points, 2) << "the free had to look again";
  EXPECT_NE(find_slice(last.bytes)->kind, SliceKind::kPage) << "the empty page went back";
  ManyHeaps again;
  for (int i = 0; i < 2; ++i) hold(again.one(), 100, 1);
  ASSERT_TRUE(ebb_heap_destroy(again.one()));
  again.end_others();
}

// As above, but the free holds the structure's lock when the other heaps of its slice end: the memory stays.
TEST_P(HeapDeleteRace, TheFreeThatLooksAtAnUnusedStructure) {
  ManyHeaps many;
  Held last{};
  std::thread([&] { last = hold(many.one(), 200, 1); }).join();
  Interleaving steps;
  steps.hold("free", "heap.found");
  std::thread freer = steps.run("free", [&] { ebb_free(last.bytes); });
  steps.wait_until_held("free");
  ASSERT_TRUE(ebb_heap_delete(many.one()));
  steps.release("free", "heap.looking");
  steps.wait_until_held("free");
  many.end_others();
  EXPECT_GT(many.resident_bytes(), 0u);
  steps.release("free");
  freer.join();
  EXPECT_NE(find_slice(last.bytes)->kind, SliceKind::kPage) << "the empty page went back";
  // The slice's turn comes when it is next without a heap in use.
  ManyHeaps again;
  ASSERT_TRUE(ebb_heap_destroy(again.one()));
  again.end_others();
}

INSTANTIATE_TEST_SUITE_P(Of, HeapDeleteRace, testing::Values(true), [](const auto&) { return "AHeap"; });

// The fork comes when a heap has lost its threads and not yet its spans.
TEST_P(HeapDeleteRace, AForkInTheMiddleOfIt) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all = hold_many(heap, 300);
  Event half, go_on;
  Worker deleter;
  {
    AtPoint point("heap.delete", [&] {
      half.set();
      go_on.wait("the fork");
    });
    deleter.start([&] { EXPECT_TRUE(ebb_heap_delete(heap)); });
    half.wait("the delete to get there");
    auto body = [](void* argument) {
      auto* held = static_cast<std::vector<Held>*>(argument);
      expect_intact(*held);
      free_all(held);
      ebb_heap_t* another = ebb_heap_new();
      std::vector<Held> more = hold_many(another, 100);
      expect_intact(more);
      EXPECT_TRUE(ebb_heap_destroy(another));
    };
    EXPECT_EQ(in_child(body, &all), 0);
    go_on.set();
    deleter.wait();
  }
  expect_intact(all);
  free_all(&all);
}

}  // namespace
}  // namespace ebb::test
