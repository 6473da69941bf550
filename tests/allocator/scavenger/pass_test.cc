// A pass of the scavenger among frees, forced collects and refusals, each interleaving forced: what is free is never
// forgotten, whoever was in the middle of what.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

#include "arena/cage.h"
#include "driven_scavenger.h"
#include "interleaving.h"
#include "page/page.h"
#include "stats/counters.h"

namespace ebb::test {
namespace {

constexpr size_t kLarge = 2 * MiB;

class Pass : public DrivenScavenger {
 protected:
  // Free, dirty and due memory in spans that do not touch each other; `kept` holds what stands between.
  void make_due(int spans) {
    std::vector<void*> free_ones;
    for (int i = 0; i < spans; ++i) {
      free_ones.push_back(make_touched(kLarge));
      kept_.push_back(make_touched(64 * KiB));
    }
    for (void* p : free_ones) ebb_free(p);
    let_time_pass_ms(100);
  }
  void TearDown() override {
    for (void* p : kept_) ebb_free(p);
    kept_.clear();
    DrivenScavenger::TearDown();
  }
  std::vector<void*> kept_;
};

TEST_F(Pass, ReturnsWhatHasBeenFreeForTheDelayAndNotBefore) {
  ebb_free(make_touched(kLarge));
  EXPECT_GE(dirty_bytes(), kLarge);
  for (int quarter = 0; quarter < 4; ++quarter) {
    EXPECT_TRUE(pass()) << "it has to come again";
    EXPECT_GE(dirty_bytes(), kLarge) << "too early, after " << quarter << " quarters of the delay";
    tick();
  }
  EXPECT_FALSE(pass());
  EXPECT_EQ(dirty_bytes(), 0u);
}

TEST_F(Pass, AFreeBehindARunningPassIsPurgedByTheNextOnes) {
  make_due(2);
  void* late = make_touched(kLarge);
  Interleaving steps;
  steps.hold("pass", "purge.before_os");
  bool remains = false;
  std::thread running = steps.run("pass", [&] { remains = pass(); });
  steps.wait_until_held("pass");
  ebb_free(late);
  steps.release("pass");
  running.join();
  EXPECT_TRUE(remains) << "the late free must bring the scavenger back";
  EXPECT_GE(dirty_bytes(), kLarge);
  let_time_pass_ms(100);
  EXPECT_FALSE(pass());
  EXPECT_EQ(dirty_bytes(), 0u);
}

TEST_F(Pass, AFreeBetweenDisarmingAndReadingArmsAgain) {
  make_due(1);
  void* late = make_touched(kLarge);
  armings_ = 0;
  Interleaving steps;
  steps.interrupt("pass", "purge.disarmed", [&] {
    ebb_free(late);
    late = nullptr;
  });
  steps.play("pass", [] { EXPECT_TRUE(pass()); });
  EXPECT_GE(armings_, 1);
  settle();
  EXPECT_EQ(dirty_bytes(), 0u);
}

// Once a pass has looked at a list nothing that comes later may rely on it; also not when it comes between two steps.
TEST_F(Pass, AFreeBetweenTwoStepsIsNotForgotten) {
  make_due(8);
  std::vector<void*> late;
  for (int i = 0; i < 3; ++i) late.push_back(make_touched(kLarge));
  Interleaving steps;
  steps.interrupt("pass", "purge.between", [&] {
    if (late.empty()) return;
    ebb_free(late.back());
    late.pop_back();
  });
  steps.play("pass", [] { pass(); });
  EXPECT_TRUE(late.empty());
  settle();
  EXPECT_EQ(dirty_bytes(), 0u);
}

// A pass stands in the middle of its first step. The forced collect waits for that step alone: it ends while the pass,
// which has much left to do, is held again behind it.
TEST_F(Pass, ForcedCollectWaitsForOneStepAndDoesTheRest) {
  make_due(8);
  Interleaving steps;
  steps.hold("pass", "purge.before_os");
  std::thread running = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  steps.hold("forced", "lock.wait");
  std::thread forced = steps.run("forced", [] { ebb_collect(true); });
  steps.wait_until_held("forced");  // at the lock of the step: it has met the pass
  EXPECT_FALSE(steps.has_ended("forced"));
  steps.release("pass", "purge.between");
  steps.wait_until_held("pass");
  steps.release("forced");
  forced.join();
  EXPECT_EQ(dirty_bytes(), 0u) << "everything that was free at the call is back";
  EXPECT_EQ(steps.count("pass", "purge.before_os"), 1);
  steps.release("pass");
  running.join();
}

// Arenas of the program's own, adopted ones among them, and of a sub-process: as many as there are.
TEST_F(Pass, EveryArenaIsPurgedWithinTheDelay) {
  constexpr size_t kBytes = 4 * MiB;
  constexpr int kArenas = 12;
  std::vector<ebb_arena_t> arenas(kArenas);
  std::vector<void*> mappings;
  for (int i = 0; i < kArenas; ++i) {
    if (i % 2 == 0) {
      ASSERT_TRUE(ebb_arena_reserve(kBytes, EBB_ARENA_EXCLUSIVE, &arenas[i]));
      continue;
    }
    mappings.push_back(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_TRUE(ebb_arena_adopt(mappings.back(), kBytes, EBB_ARENA_COMMITTED | EBB_ARENA_ZERO | EBB_ARENA_EXCLUSIVE, &arenas[i]));
  }
  std::vector<ebb_heap_t*> heaps;
  for (ebb_arena_t arena : arenas) heaps.push_back(ebb_heap_new_in(arena));
  settle();
  std::vector<void*> blocks;
  for (ebb_heap_t* heap : heaps) blocks.push_back(memset(ebb_heap_malloc(heap, 2 * MiB), 1, 2 * MiB));
  armings_ = 0;
  for (void* p : blocks) ebb_free(p);
  EXPECT_EQ(armings_, kArenas);
  EXPECT_GE(dirty_bytes(), kArenas * 2 * MiB);
  let_time_pass_ms(100);
  pass();
  EXPECT_EQ(dirty_bytes(), 0u);
  for (ebb_heap_t* heap : heaps) ebb_heap_destroy(heap);
  for (ebb_arena_t arena : arenas) EXPECT_TRUE(ebb_arena_release(arena));
  for (void* p : mappings) munmap(p, kBytes);
}

// Generations are counted around a circle: old memory must not be taken for what lies ahead.
TEST_F(Pass, ForcedCollectTakesMemoryOfAnyAge) {
  for (int age : {1, 100, 127, 128, 200, 250}) {
    ebb_free(make_touched(kLarge));
    for (int i = 0; i < age; ++i) begin_generation();
    ebb_collect(true);
    EXPECT_EQ(dirty_bytes(), 0u) << "after " << age << " generations";
  }
}

TEST_F(Pass, TwoForcedCollectsAtOnceBothKeepTheirPromise) {
  make_due(6);
  Interleaving steps;
  steps.hold("first", "purge.before_os");
  std::thread first = steps.run("first", [] {
    ebb_collect(true);
    EXPECT_EQ(dirty_bytes(), 0u);
  });
  steps.wait_until_held("first");
  steps.hold("second", "lock.wait");
  std::thread second = steps.run("second", [] {
    ebb_collect(true);
    EXPECT_EQ(dirty_bytes(), 0u);
  });
  steps.wait_until_held("second");
  steps.release("first");
  steps.release("second");
  first.join();
  second.join();
}

// tests/models/purge.pml, FORCED_LEAVES_STEP: both forced purges have seen an empty list; then the pass begins the
// other one and has its only run in hand. The second to look must not take "nothing pending" for "all is back".
TEST_F(Pass, ForcedCollectDoesNotReturnWhileAnotherHasTheLastRunInHand) {
  make_due(1);
  Interleaving steps;
  steps.hold("first", "purge.drained");
  steps.hold("second", "purge.drained");
  steps.hold("pass", "purge.before_os");
  std::thread first = steps.run("first", [] { ebb_collect(true); });
  steps.wait_until_held("first");
  size_t dirty_at_return = 1;
  std::atomic<bool> os_was_called{false}, was_called_at_return{false};
  std::thread second = steps.run("second", [&] {
    ebb_collect(true);
    was_called_at_return = os_was_called.load();
    dirty_at_return = dirty_bytes();
  });
  steps.wait_until_held("second");
  std::thread running = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  steps.release("first", "lock.wait");
  steps.wait_until_held("first");
  steps.release("second", "lock.wait");
  // On the broken protocol it ends here.
  EXPECT_TRUE(steps.wait_until_held_or_ended("second")) << "it returned while a run was on its way to the OS";
  os_was_called = true;
  steps.release("pass");
  steps.release("first");
  if (!steps.has_ended("second")) steps.release("second");
  for (std::thread* thread : {&running, &first, &second}) thread->join();
  EXPECT_TRUE(was_called_at_return);
  EXPECT_EQ(dirty_at_return, 0u);
}

TEST_F(Pass, WhatTheOsRefusesIsNeverBelievedZeroAndLetsTheScavengerSleep) {
  make_due(1);
  refuses_purges_ = true;
  purges_ = 0;
  EXPECT_FALSE(pass()) << "time alone changes nothing";
  EXPECT_EQ(purges_, 1);
  ebb_collect(true);
  EXPECT_EQ(purges_, 2) << "a forced collect tries once and ends";
  unsigned char* p = static_cast<unsigned char*>(ebb_calloc(1, kLarge));
  for (size_t i = 0; i < kLarge; ++i) ASSERT_EQ(p[i], 0) << "at " << i;
  refuses_purges_ = false;
  ebb_free(p);
  settle();
  ebb_collect(true);
  EXPECT_EQ(dirty_bytes(), 0u) << "given back when the OS takes it again";
}

// Option thp=full: a hole would split a huge page.
TEST_F(Pass, WhereHugePagesAreToStayWholeHolesAreForTheForcedCollectAlone) {
  ebb_option_set("thp", 2);
  std::vector<void*> kept = leave_sparse_pages(512, 20);
  uint64_t before = counted(Counter::k_holes_bytes);
  let_time_pass_ms(1000);
  settle();
  EXPECT_EQ(counted(Counter::k_holes_bytes), before);
  ebb_collect(true);
  EXPECT_GT(counted(Counter::k_holes_bytes), before);
  ebb_option_set("thp", 0);
  for (void* p : kept) ebb_free(p);
}

// While more pages become sparse, the first ones wait the whole interval.
TEST_F(Pass, SparsePagesWaitTheHoleIntervalWhileSomebodyFrees) {
  uint64_t before = counted(Counter::k_holes_bytes);
  std::vector<void*> kept;
  int quarters = 0;
  for (; counted(Counter::k_holes_bytes) == before && quarters < 20; ++quarters) {
    for (void* p : leave_sparse_pages(512, 2)) kept.push_back(p);
    pass();
    tick();
  }
  EXPECT_EQ(quarters, 9) << "seen at once, due 200 ms later";
  for (void* p : kept) ebb_free(p);
}

TEST_F(Pass, SparsePagesWaitHalfTheHoleIntervalOnceNobodyFrees) {
  std::vector<void*> kept = leave_sparse_pages(512, 20);
  uint64_t before = counted(Counter::k_holes_bytes);
  for (int quarter = 0; quarter < 4; ++quarter) {
    EXPECT_TRUE(pass());
    EXPECT_EQ(counted(Counter::k_holes_bytes), before);
    tick();
  }
  pass();
  EXPECT_GT(counted(Counter::k_holes_bytes), before);
  for (void* p : kept) ebb_free(p);
}

TEST_F(Pass, SparsePagesArePunchedAfterTheHoleInterval) {
  std::vector<void*> kept = leave_sparse_pages(512, 20);
  uint64_t before = counted(Counter::k_holes_bytes);
  EXPECT_TRUE(pass()) << "sparse pages wait";
  EXPECT_EQ(counted(Counter::k_holes_bytes), before);
  let_time_pass_ms(200);
  pass();
  EXPECT_GT(counted(Counter::k_holes_bytes) - before, 15 * kSliceBytes / 2);
  for (void* p : kept) {
    for (int i = 0; i < 512; ++i) ASSERT_EQ(static_cast<unsigned char*>(p)[i], 0x33);
    ebb_free(p);
  }
}

// tests/models/holes.pml, COUNTS_BEFORE_RELEASE: a punch begins while a thread is about to release a sparse page. It
// finds the page owned; when the page is released the scavenger must learn of it once more.
TEST_F(Pass, APageThatBecomesSparseBehindThePunchIsPunchedByALaterOne) {
  Interleaving steps;
  std::vector<void*> blocks;
  std::thread owner = steps.run("owner", [&] {
    for (size_t i = 0; i < kSliceBytes / 512 / 2; ++i) {
      blocks.push_back(ebb_malloc(512));
      memset(blocks.back(), 0x33, 512);
    }
    for (size_t i = 2; i < blocks.size(); ++i) ebb_free(blocks[i]);
    steps.hold("owner", "remote.release");
    ebb_collect(false);
  });
  steps.wait_until_held("owner");
  uint64_t before = counted(Counter::k_holes_bytes);
  // Whatever the count says by now, a whole interval of passes finds nothing to punch.
  pass();
  let_time_pass_ms(250);
  pass();
  EXPECT_EQ(counted(Counter::k_holes_bytes), before);
  armings_ = 0;
  steps.release("owner");
  owner.join();
  EXPECT_GE(armings_, 1) << "the scavenger may sleep by now";
  EXPECT_TRUE(pass());
  let_time_pass_ms(250);
  pass();
  EXPECT_GT(counted(Counter::k_holes_bytes), before);
  ebb_free(blocks[0]);
  ebb_free(blocks[1]);
}

// The same when the page was marked before: COUNTS_FIRST_TIME_ONLY. A free claims the sparse page just when the punch
// comes by, and gives it up again behind it.
TEST_F(Pass, ASparsePageThatAFreeHadClaimedDuringThePunchIsPunchedByALaterOne) {
  std::vector<void*> kept = leave_sparse_pages(512, 1);
  Interleaving steps;
  uint64_t before = counted(Counter::k_holes_bytes);
  pass();
  let_time_pass_ms(250);
  // Half of what was live comes back: the free that completes it claims the page, and is held when it gives it up.
  std::thread freer = steps.run("freer", [&] {
    steps.hold("freer", "remote.release");
    ebb_free(kept.back());
    kept.pop_back();
  });
  steps.wait_until_held("freer");
  pass();
  EXPECT_EQ(counted(Counter::k_holes_bytes), before) << "it was the freer's";
  steps.release("freer");
  freer.join();
  for (int i = 0; i < 20 && pass(); ++i) tick();
  EXPECT_GT(counted(Counter::k_holes_bytes), before);
  for (void* p : kept) ebb_free(p);
}

// The forced collect comes when the pass has taken the count and punches its first page.
TEST_F(Pass, ForcedCollectPunchesWhatARunningPunchHasStillToReach) {
  std::vector<void*> kept = leave_sparse_pages(512, 12);
  pass();
  let_time_pass_ms(250);
  Interleaving steps;
  uint64_t before = counted(Counter::k_holes_bytes);
  steps.hold("pass", "holes.claimed");
  std::thread running = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  steps.hold("forced", "lock.wait");
  std::thread forced = steps.run("forced", [] { ebb_collect(true); });
  EXPECT_TRUE(steps.wait_until_held_or_ended("forced")) << "a page was just being punched";
  steps.release("pass", "remote.release");  // behind the step, about to give the first page up
  steps.wait_until_held("pass");
  if (!steps.has_ended("forced")) steps.release("forced");
  forced.join();
  EXPECT_GT(counted(Counter::k_holes_bytes) - before, 8 * kSliceBytes / 2);
  steps.release("pass");
  running.join();
  for (void* p : kept) ebb_free(p);
}

TEST_F(Pass, RefusedHolesAreNotTriedAgainAndTheirBlocksAreCleared) {
  std::vector<void*> kept = leave_sparse_pages(1024, 4);
  refuses_purges_ = true;
  for (int i = 0; i < 12; ++i) {
    pass();
    tick();
  }
  int tried = purges_;
  EXPECT_GT(tried, 0);
  for (int i = 0; i < 40; ++i) {
    pass();
    tick();
  }
  // Free spans are tried once a delay; holes never again. Ten delays went by.
  EXPECT_LE(purges_ - tried, 10 * 4);
  refuses_purges_ = false;
  std::vector<unsigned char*> again;
  for (int i = 0; i < 300; ++i) {
    again.push_back(static_cast<unsigned char*>(ebb_calloc(1, 1000)));
    for (int k = 0; k < 1000; ++k) ASSERT_EQ(again.back()[k], 0);
  }
  for (void* p : again) ebb_free(p);
  for (void* p : kept) {
    EXPECT_EQ(static_cast<unsigned char*>(p)[1023], 0x33);
    ebb_free(p);
  }
}

// The free that empties a page reaches it while its owner gives it up, having counted that block as live.
TEST_F(Pass, TheLastFreeRacingWithTheReleaseOfAPageGivesItBack) {
  ebb_collect(true);
  ebb_stats_t before, after;
  ebb_stats_get(&before, sizeof(before));
  void* last = nullptr;
  Interleaving steps;
  std::thread owner = steps.run("owner", [&] {
    last = ebb_malloc(80);
    steps.hold("owner", "remote.release");
    ebb_collect(false);
  });
  steps.wait_until_held("owner");
  ebb_free(last);
  steps.release("owner");
  owner.join();
  ebb_stats_get(&after, sizeof(after));
  EXPECT_EQ(after.page_count, before.page_count);
}

// Behind its release a page is anybody's: others free the rest of it, and the OS has its memory and its entry in the
// slice table before the one who released it counts it as sparse.
TEST_F(Pass, ASparsePageAndItsEntryAreGoneBeforeItIsCounted) {
  std::vector<void*> kept = leave_sparse_pages(512, 200, 16);
  settle();  // punched; the free of half of what is left makes a page sparse again
  auto page_of = [](void* p) { return reinterpret_cast<uintptr_t>(p) / kSliceBytes; };
  uintptr_t page = page_of(kept[kept.size() / 2]);
  std::vector<void*> of_page, of_others;
  for (void* p : kept) (page_of(p) == page ? of_page : of_others).push_back(p);
  Interleaving steps;
  steps.hold("freer", "page.released");
  std::thread freer = steps.run("freer", [&of_page] {
    for (size_t i = 0; i < (of_page.size() + 1) / 2; ++i) ebb_free(of_page[i]);
  });
  steps.wait_until_held("freer");
  for (size_t i = (of_page.size() + 1) / 2; i < of_page.size(); ++i) ebb_free(of_page[i]);
  for (void* p : of_others) ebb_free(p);
  ebb_collect(true);
  EXPECT_EQ(as_page(find_slice(of_page[0]))->heap.load(), nullptr) << "the entry is with the OS";
  steps.release("freer");
  freer.join();
}

// An arena's only free memory is in the scavenger's hand, or its entries in the table are: the allocation waits.
TEST_F(Pass, TheLastFreeMemoryOfAnArenaIsWaitedFor) {
  for (const char* point : {"purge.before_os", "table.before_os"}) {
    ebb_arena_t arena;
    ASSERT_TRUE(ebb_arena_reserve(4 * MiB, EBB_ARENA_EXCLUSIVE, &arena));
    ebb_heap_t* heap = ebb_heap_new_in(arena);
    void* p = ebb_heap_malloc(heap, 3 * MiB);
    ASSERT_NE(p, nullptr);
    memset(p, 1, 3 * MiB);
    ebb_free(p);
    let_time_pass_ms(100);
    Interleaving steps;
    steps.hold("pass", point);
    std::thread running = steps.run("pass", [] { pass(); });
    steps.wait_until_held("pass");
    steps.hold("allocation", "lock.wait");
    std::thread allocating = steps.run("allocation", [&] { p = ebb_heap_malloc(heap, 3 * MiB); });
    EXPECT_TRUE(steps.wait_until_held_or_ended("allocation")) << "it was refused";
    steps.release("pass");
    if (!steps.has_ended("allocation")) steps.release("allocation");
    allocating.join();
    running.join();
    EXPECT_NE(p, nullptr) << point;
    ASSERT_TRUE(ebb_heap_destroy(heap));
    ASSERT_TRUE(ebb_arena_release(arena));
  }
}

}  // namespace
}  // namespace ebb::test
