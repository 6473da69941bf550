// The end of heaps, in every state that their pages and threads can be in.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "arena/cage.h"
#include "base/units.h"
#include "heap/heap_lifetime.h"
#include "heap/shared_pages.h"
#include "heaps/contents.h"
#include "heaps/worker.h"
#include "page/remote.h"
#include "scavenger/sweep.h"
#include "test_point_script.h"

namespace ebb::test {
namespace {

Page* page_of(const void* p) { return page_head(find_slice(p)); }

bool is_ownerless(const Page* page) { return (page->remote.load() & remote::kOwnerless) != 0; }

// What all threads together have in use must be the same before and after; metadata is kept.
class HeapEnd : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ebb_heap_destroy(ebb_heap_new());
    ebb_collect(false);
    before_ = block_bytes();
  }
  void TearDown() override {
    ebb_collect(false);
    EXPECT_EQ(block_bytes(), before_);
  }

  // Ends the heap as the parameter says; blocks that must live on then are freed by the caller.
  static bool deletes() { return GetParam(); }
  static bool end(ebb_heap_t* heap) { return deletes() ? ebb_heap_delete(heap) : ebb_heap_destroy(heap); }
  static void check_and_free(std::vector<Held>* all) {
    if (!deletes()) return all->clear();
    expect_intact(*all);
    for (const Held& held : *all) EXPECT_EQ(ebb_heap_of(held.bytes), ebb_heap_main());
    free_all(all);
  }

  static size_t block_bytes() {
    size_t bytes = 0;
    for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
      arena->for_each_used([&bytes](Slice* span) {
        if (span->kind == SliceKind::kPage || span->kind == SliceKind::kLarge) bytes += size_t{span->slices} << kSliceShift;
      });
    }
    return bytes;
  }

 private:
  size_t before_ = 0;
};

TEST_P(HeapEnd, OfTheOnlyThread) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all = hold_many(heap, 2000);
  expect_intact(all);
  ASSERT_TRUE(end(heap));
  check_and_free(&all);
}

TEST_P(HeapEnd, OfAnEmptyHeap) { ASSERT_TRUE(end(ebb_heap_new())); }

TEST_P(HeapEnd, ByAThreadThatNeverUsedIt) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all = hold_many(heap, 500);
  Worker other;
  other.run([&] { ASSERT_TRUE(end(heap)); });
  check_and_free(&all);
}

// A page of a thread that is gone, with a block on its list of remote frees.
TEST_P(HeapEnd, WithAnOwnerlessPageThatHasARemoteFree) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all;
  std::thread([&] {
    for (size_t i = 0; i < 600; ++i) all.push_back(hold(heap, 200, i));
  }).join();
  Page* page = page_of(all.front().bytes);
  ebb_free(all.front().bytes);
  all.erase(all.begin());
  ASSERT_TRUE(is_ownerless(page));
  ASSERT_EQ(remote::count_of(page->remote.load()), 1u);
  ASSERT_TRUE(end(heap));
  check_and_free(&all);
}

TEST_P(HeapEnd, WhileItsThreadIsParked) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all;
  Worker first;
  first.run([&] {
    all = hold_many(heap, 300);
    ebb_park_begin();
  });
  ASSERT_TRUE(end(heap));
  check_and_free(&all);
  first.run([&] {
    ebb_park_end();
    std::vector<Held> more = hold_many(ebb_heap_main(), 300);
    expect_intact(more);
    free_all(&more);
    ebb_collect(false);
  });
}

TEST_P(HeapEnd, AfterItsParkedThreadWasSwept) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all;
  Worker first;
  first.run([&] {
    all = hold_many(heap, 300);
    ebb_park_begin();
  });
  sweep_parked_threads(kSweepAllNow);
  ASSERT_TRUE(is_ownerless(page_of(all.front().bytes)));
  ASSERT_TRUE(end(heap));
  check_and_free(&all);
  first.run([] { ebb_park_end(); });
}

TEST_P(HeapEnd, WhileItsThreadsRest) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<Held> all;
  {
    Worker one, two;
    for (Worker* worker : {&one, &two}) {
      worker->run([&] {
        std::vector<Held> more = hold_many(heap, 300, all.size());
        all.insert(all.end(), more.begin(), more.end());
      });
    }
    ASSERT_TRUE(end(heap));
    check_and_free(&all);
    // Both go on as if nothing had happened.
    for (Worker* worker : {&one, &two}) {
      worker->run([&] {
        std::vector<Held> more = hold_many(ebb_heap_main(), 100);
        expect_intact(more);
        free_all(&more);
      });
    }
  }
}

// The thread ends its part of the heap after the end of the heap has seen it, and before it is stopped.
TEST_P(HeapEnd, RacingTheExitOfItsThread) {
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
TEST_P(HeapEnd, WhileTheScavengerPunchesHoles) {
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
    // The process's own scavenger may come first.
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

INSTANTIATE_TEST_SUITE_P(By, HeapEnd, testing::Bool(), [](const auto& instance) { return instance.param ? "Delete" : "Destroy"; });

class HeapDelete : public HeapEnd {};

// A free has claimed a page and found its heap; before it has the heap's lock, the heap is deleted and another one
// made of its structure.
TEST_P(HeapDelete, RacingTheFreeThatClaimsAPage) {
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

// Threads free blocks of heaps all the time while those are deleted.
TEST_P(HeapDelete, RacingManyFrees) {
  for (size_t round = 0; round < 30; ++round) {
    ebb_heap_t* heap = ebb_heap_new();
    std::vector<Held> all[3];
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] { all[t] = hold_many(heap, 400, t * 500); });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    for (size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        expect_intact(all[t]);
        free_all(&all[t]);
      });
    }
    ASSERT_TRUE(ebb_heap_delete(heap));
    for (std::thread& thread : threads) thread.join();
  }
}

// A thread that rests keeps no page of a deleted heap beyond its next visit to the allocator's slow paths.
TEST_P(HeapDelete, LeavesPagesToAThreadOnlyUntilItComesBy) {
  ebb_heap_t* heap = ebb_heap_new();
  Worker owner;
  Held held{};
  owner.run([&] { held = hold(heap, 200, 3); });
  Page* page = page_of(held.bytes);
  ASSERT_TRUE(ebb_heap_delete(heap));
  EXPECT_FALSE(is_ownerless(page));
  owner.run([&] {
    EXPECT_TRUE(held.is_intact());
    ebb_free(held.bytes);
    ebb_collect(false);
  });
  EXPECT_NE(page->kind, SliceKind::kPage);
}

INSTANTIATE_TEST_SUITE_P(Of, HeapDelete, testing::Values(true), [](const auto&) { return "AHeap"; });

// ---- fork ----

// Runs `body` in a child and returns its exit code.
int in_child(void (*body)(void*), void* argument) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body(argument);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct ForkWorld {
  ebb_heap_t* own;
  ebb_heap_t* others;
  std::vector<Held> in_own, in_others;
};

void end_both(void* argument) {
  ForkWorld* world = static_cast<ForkWorld*>(argument);
  expect_intact(world->in_own);
  expect_intact(world->in_others);
  std::vector<Held> more = hold_many(world->others, 200, 7);
  expect_intact(more);
  EXPECT_TRUE(ebb_heap_destroy(world->own));
  EXPECT_TRUE(ebb_heap_delete(world->others));
  expect_intact(world->in_others);
  free_all(&world->in_others);
  free_all(&more);
  ebb_heap_t* again = ebb_heap_new();
  std::vector<Held> last = hold_many(again, 200);
  expect_intact(last);
  EXPECT_TRUE(ebb_heap_destroy(again));
}

TEST(HeapFork, BetweenNewAndDestroy) {
  ForkWorld world{ebb_heap_new(), ebb_heap_new(), {}, {}};
  Worker other;
  world.in_own = hold_many(world.own, 300);
  other.run([&] { world.in_others = hold_many(world.others, 300); });
  EXPECT_EQ(in_child(end_both, &world), 0);
  end_both(&world);
}

// The fork comes when a heap has lost its threads and not yet its spans.
TEST(HeapFork, InTheMiddleOfADelete) {
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

// Forks while other threads make, use and end heaps.
TEST(HeapFork, WhileHeapsComeAndGo) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&stop, t] {
      for (size_t i = 0; !stop; ++i) {
        ebb_heap_t* heap = ebb_heap_new();
        std::vector<Held> all = hold_many(heap, 20, i);
        if (i % 2 == t) {
          ebb_heap_delete(heap);
          free_all(&all);
        } else {
          ebb_heap_destroy(heap);
        }
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    auto body = [](void*) {
      ebb_heap_t* heap = ebb_heap_new();
      std::vector<Held> all = hold_many(heap, 100);
      expect_intact(all);
      EXPECT_TRUE(ebb_heap_destroy(heap));
    };
    ASSERT_EQ(in_child(body, nullptr), 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ebb::test
