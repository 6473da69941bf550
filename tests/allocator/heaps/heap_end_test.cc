// The end of heaps, in every state that their pages and threads can be in. What has to be forced by a test point is in
// heap_races_test.cc.
#include <thread>

#include "heaps/contents.h"
#include "heaps/heap_end.h"
#include "heaps/in_child.h"
#include "heaps/worker.h"
#include "scavenger/sweep.h"

namespace ebb::test {
namespace {

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

INSTANTIATE_TEST_SUITE_P(By, HeapEnd, testing::Bool(), [](const auto& instance) { return instance.param ? "Delete" : "Destroy"; });

class HeapDelete : public HeapEnd {};

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

// It rests for ever, as far as the allocator knows, and others free the blocks.
TEST_P(HeapDelete, GivesPagesOfARestingThreadBackWithTheirLastBlock) {
  ebb_heap_t* heap = ebb_heap_new();
  Worker owner;
  std::vector<Held> all;
  owner.run([&] { all = hold_many(heap, 60); });
  std::vector<Page*> pages;
  for (const Held& held : all) pages.push_back(page_of(held.bytes));
  ASSERT_TRUE(ebb_heap_delete(heap));
  expect_intact(all);
  free_all(&all);
  for (Page* page : pages) {
    EXPECT_NE(page->kind, SliceKind::kPage);
    EXPECT_NE(page->kind, SliceKind::kLarge);
  }
}

// It freed a block itself, so no free of the others knows that it is the last one.
TEST_P(HeapDelete, GivesPagesOfARestingThreadBackInAPurge) {
  ebb_heap_t* heap = ebb_heap_new();
  Worker owner;
  Held its_own{}, others{};
  owner.run([&] {
    its_own = hold(heap, 200, 1);
    others = hold(heap, 200, 2);
  });
  Page* page = page_of(others.bytes);
  ASSERT_EQ(page, page_of(its_own.bytes));
  ASSERT_TRUE(ebb_heap_delete(heap));
  owner.run([&] { ebb_free(its_own.bytes); });
  ebb_collect(true);
  EXPECT_TRUE(others.is_intact());
  ASSERT_EQ(page->kind, SliceKind::kPage);
  ebb_free(others.bytes);
  EXPECT_EQ(page->kind, SliceKind::kPage);
  ebb_collect(true);
  EXPECT_NE(page->kind, SliceKind::kPage);
}

INSTANTIATE_TEST_SUITE_P(Of, HeapDelete, testing::Values(true), [](const auto&) { return "AHeap"; });

// ---- fork ----

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
    EXPECT_EQ(in_child(body, nullptr), 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ebb::test
