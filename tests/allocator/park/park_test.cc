// Parking: who has the thread's heaps when, with each interleaving of heap/thread.h's states forced.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "heap/thread.h"
#include "interleaving.h"
#include "scavenger/driven_scavenger.h"
#include "stats/counters.h"

namespace ebb::test {
namespace {

class Park : public DrivenScavenger {
 protected:
  // Pages of several classes that the calling thread keeps in reserve.
  static constexpr size_t kSizes[] = {140, 200, 300, 700, 1500, 3000, 6000};
  static void keep_pages() {
    for (size_t size : kSizes) ebb_free(make_touched(size));
  }
  static size_t pages() {
    ebb_stats_t stats;
    ebb_stats_get(&stats, sizeof(stats));
    return stats.page_count;
  }
  // Only while the sweep is held in a step: it keeps threads from coming and going.
  static Thread* thread_being_swept() {
    Thread* thread = g_threads;
    while (thread != nullptr && thread->gate.load() != kSweeping) thread = thread->next;
    return thread;
  }
  // The thread that is being swept has said that it waits.
  static void wait_until_it_is_wanted_back() {
    Thread* thread = thread_being_swept();
    ASSERT_NE(thread, nullptr);
    while (!thread->wants_back.load()) std::this_thread::yield();
  }
  // Everything that is due is swept.
  static void sweep() {
    let_time_pass_ms(250);
    pass();
  }
};

TEST_F(Park, WhatAParkedThreadKeepsIsGivenUpByTheScavenger) {
  size_t before = pages();
  Interleaving steps;
  std::thread owner = steps.run("owner", [&] {
    keep_pages();
    steps.hold("owner", "park.begun");
    EXPECT_TRUE(ebb_park_begin());
    ebb_park_end();
    ebb_free(ebb_malloc(100));
  });
  steps.wait_until_held("owner");
  EXPECT_GE(pages(), before + 7);
  sweep();
  EXPECT_EQ(pages(), before);
  steps.release("owner");
  owner.join();
}

TEST_F(Park, ASleepingScavengerIsToldOfWorkAndOfNothingElse) {
  std::thread([] {
    keep_pages();
    uint32_t told = g_armings;
    uint64_t parks = counted(Counter::k_parks);
    EXPECT_TRUE(ebb_park_begin());
    EXPECT_EQ(g_armings, told + 1);
    sweep();
    ebb_park_end();
    told = g_armings;
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(ebb_park_begin());
      ebb_park_end();
    }
    EXPECT_EQ(counted(Counter::k_parks), parks + 1);
    EXPECT_EQ(g_armings, told) << "nothing has happened since it was swept";
  }).join();
}

// The sweep is in the middle of a class when the owner comes back: it gets its heaps behind that class, not behind all.
TEST_F(Park, ParkEndWaitsForTheWorkOfOneClassOnly) {
  Interleaving steps;
  std::thread owner = steps.run("owner", [&] {
    keep_pages();
    steps.hold("owner", "park.begun");
    ebb_park_begin();
    ebb_park_end();
    ebb_free(make_touched(100));
  });
  steps.wait_until_held("owner");
  let_time_pass_ms(250);
  steps.hold("pass", "sweep.step");
  std::thread sweeper = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  steps.release("owner");
  // The owner says that it waits; only then the sweep goes on.
  ASSERT_NO_FATAL_FAILURE(wait_until_it_is_wanted_back());
  steps.release("pass");
  owner.join();
  sweeper.join();
  EXPECT_EQ(steps.count("pass", "sweep.step"), 1);
}

// However many heaps the thread has pages in.
TEST_F(Park, ParkEndWaitsForThePagesOfOneHeapOnly) {
  constexpr int kHeaps = 20;
  size_t before = pages();
  std::vector<ebb_heap_t*> heaps;
  for (int i = 0; i < kHeaps; ++i) heaps.push_back(ebb_heap_new());
  Interleaving steps;
  std::thread owner = steps.run("owner", [&] {
    std::vector<void*> blocks;
    for (ebb_heap_t* heap : heaps) blocks.push_back(ebb_heap_malloc(heap, 100));
    steps.hold("owner", "park.begun");
    ebb_park_begin();
    ebb_park_end();
    for (void* p : blocks) ebb_free(p);
    steps.hold("owner", "park.begun");
    ebb_park_begin();
    ebb_park_end();
  });
  steps.wait_until_held("owner");
  let_time_pass_ms(250);
  steps.hold("pass", "page.released");
  std::thread sweeper = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  steps.release("owner");
  ASSERT_NO_FATAL_FAILURE(wait_until_it_is_wanted_back());
  steps.release("pass");
  steps.wait_until_held("owner");  // it has been running, and has parked again
  EXPECT_LE(steps.count("pass", "page.released"), 2);
  sweeper.join();
  sweep();
  sweep();
  EXPECT_EQ(pages(), before) << "the interrupted sweep went on";
  steps.release("owner");
  owner.join();
  for (ebb_heap_t* heap : heaps) ebb_heap_delete(heap);
}

// tests/models/park.pml, TOUCHED_RESET_LATE: what the owner uses between two halves of a sweep is swept, too.
TEST_F(Park, AnInterruptedSweepGoesOnAndForgetsNothing) {
  size_t before = pages();
  Interleaving steps;
  std::thread owner = steps.run("owner", [&] {
    keep_pages();
    steps.hold("owner", "park.begun");
    ebb_park_begin();
    ebb_park_end();
    keep_pages();  // also of classes that the sweep is done with
    steps.hold("owner", "park.begun");
    ebb_park_begin();
    steps.hold("owner", "the end");
    ebb_park_end();
    ebb_park_begin();  // nothing was done since: whatever is still there was forgotten
    EXPECT_EQ(pages(), before);
    ebb_park_end();
  });
  steps.wait_until_held("owner");
  let_time_pass_ms(250);
  // Half of the classes, then the owner comes back.
  steps.hold("pass", "sweep.step");
  std::thread sweeper = steps.run("pass", [] { pass(); });
  for (int i = 0; i < 20; ++i) {
    steps.wait_until_held("pass");
    steps.release("pass", "sweep.step");
  }
  steps.wait_until_held("pass");
  Thread* thread = thread_being_swept();
  ASSERT_NE(thread, nullptr);
  steps.release("owner");
  while (!thread->wants_back.load()) std::this_thread::yield();
  steps.release("pass");
  sweeper.join();
  steps.wait_until_held("owner");
  sweep();
  sweep();
  EXPECT_EQ(pages(), before);
  steps.release("owner");
  owner.join();
}

TEST_F(Park, MallocWhileParkedTakesTheHeapsBack) {
  std::thread([] {
    keep_pages();
    EXPECT_TRUE(ebb_park_begin());
    Thread* self = thread_self_if_any();
    EXPECT_EQ(self->gate.load(), kParked);
    EXPECT_EQ(tls_owner, kNobodyHere) << "no page is local to a parked thread";
    EXPECT_EQ(tls_heap, &g_empty_heap);
    char* p = static_cast<char*>(ebb_malloc(100));
    ASSERT_NE(p, nullptr);
    memset(p, 1, 100);
    EXPECT_EQ(self->gate.load(), kRunning);
    sweep();
    EXPECT_EQ(p[99], 1);
    ebb_free(p);
    ebb_park_end();  // has nothing to do
    EXPECT_EQ(self->gate.load(), kRunning);
  }).join();
}

TEST_F(Park, FreeWhileParkedGoesTheRemoteWayAndLeavesTheThreadParked) {
  size_t before = pages();
  std::thread([before] {
    std::vector<void*> blocks;
    for (int i = 0; i < 3000; ++i) blocks.push_back(ebb_malloc(200));
    void* large = make_touched(3 * MiB);
    EXPECT_TRUE(ebb_park_begin());
    for (void* p : blocks) ebb_free(p);
    ebb_free(large);
    EXPECT_EQ(thread_self_if_any()->gate.load(), kParked);
    sweep();
    EXPECT_EQ(pages(), before);
    ebb_park_end();
  }).join();
}

// A signal handler allocates when park_begin has read that there is no work, and has not handed over yet.
TEST_F(Park, WorkThatASignalHandlerMakesInParkBeginIsToldOf) {
  size_t before = pages();
  std::thread([&] {
    ebb_free(ebb_malloc(100));
    ebb_park_begin();
    sweep();
    ebb_park_end();
    uint32_t told = g_armings;
    Interleaving steps;
    steps.interrupt("owner", "park.handing", [] { ebb_free(make_touched(700)); });
    steps.play("owner", [] { EXPECT_TRUE(ebb_park_begin()); });
    EXPECT_EQ(g_armings, told + 1);
    sweep();
    EXPECT_EQ(pages(), before);
    ebb_park_end();
  }).join();
}

TEST_F(Park, ASignalHandlerMayAllocateAndFreeWhileItsThreadIsParkedAndBeingSwept) {
  std::thread([&] {
    keep_pages();
    Interleaving steps;
    steps.interrupt("owner", "park.begun", [] { ebb_free(make_touched(700)); });
    steps.play("owner", [] { EXPECT_TRUE(ebb_park_begin()); });
    sweep();
    ebb_park_end();
    ebb_free(make_touched(700));
  }).join();
}

TEST_F(Park, ParkInsideTheOwnSlowPathIsRefusedAndHarmless) {
  std::thread([] {
    ebb_free(ebb_malloc(100));
    static bool is_refused;
    static Thread* self;
    is_refused = false;
    self = thread_self_if_any();
    os::g_fault_hook = [](const char*, const void*, size_t) {
      if (thread_self_if_any() == self && self->gate.load() == kBusy && !is_refused) is_refused = !ebb_park_begin();
      return false;
    };
    std::vector<void*> blocks;
    // New pages until memory has to be committed, which happens inside the slow path.
    while (!is_refused && blocks.size() < 500000) blocks.push_back(ebb_malloc(6000));
    os::g_fault_hook = nullptr;
    EXPECT_TRUE(is_refused);
    for (void* p : blocks) ebb_free(p);
  }).join();
}

TEST_F(Park, BegunTwiceAndEndedTwiceIsAsOnce) {
  std::thread([] {
    ebb_park_end();
    keep_pages();
    EXPECT_TRUE(ebb_park_begin());
    EXPECT_TRUE(ebb_park_begin());
    sweep();
    ebb_park_end();
    ebb_park_end();
    ebb_free(make_touched(100));
  }).join();
}

TEST_F(Park, AThreadWithoutHeapsHasNothingToHandOver) {
  std::thread([] {
    EXPECT_TRUE(ebb_park_begin());
    ebb_park_end();
    void* p = ebb_malloc(10);
    EXPECT_NE(p, nullptr);
    ebb_free(p);
  }).join();
}

TEST_F(Park, WithoutScavengerItSweepsInlineAndSaysSo) {
  ASSERT_TRUE(ebb_option_set("scavenger", 0));
  size_t before = pages();
  std::thread([&] {
    keep_pages();
    EXPECT_FALSE(ebb_park_begin());
    EXPECT_EQ(pages(), before) << "it gave up its reserve itself";
    ebb_park_end();
  }).join();
  ASSERT_TRUE(ebb_option_set("scavenger", 1));
}

TEST_F(Park, AThreadMayEndWhileItIsParked) {
  size_t before = pages();
  for (int i = 0; i < 20; ++i) {
    std::thread([] {
      keep_pages();
      ebb_park_begin();
    }).join();
  }
  EXPECT_EQ(pages(), before);
}

// The thread's end meets the sweep in the middle of a class, and waits for it.
TEST_F(Park, AThreadMayEndWhileItIsSwept) {
  size_t before = pages();
  Interleaving steps;
  std::thread owner = steps.run("owner", [&] {
    keep_pages();
    steps.hold("owner", "park.begun");
    ebb_park_begin();
  });
  steps.wait_until_held("owner");
  let_time_pass_ms(250);
  steps.hold("pass", "sweep.step");
  std::thread sweeper = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  Thread* thread = thread_being_swept();
  ASSERT_NE(thread, nullptr);
  steps.release("owner");
  while (!thread->wants_back.load()) std::this_thread::yield();
  steps.release("pass");
  owner.join();
  sweeper.join();
  EXPECT_EQ(pages(), before);
}

TEST_F(Park, ForcedCollectSweepsParkedThreadsWhateverTheInterval) {
  size_t before = pages();
  Interleaving steps;
  std::thread owner = steps.run("owner", [&] {
    for (int round = 0; round < 3; ++round) {
      keep_pages();
      steps.hold("owner", "park.begun");
      ebb_park_begin();
      ebb_park_end();
    }
  });
  for (int round = 0; round < 3; ++round) {
    steps.wait_until_held("owner");
    ebb_collect(true);
    EXPECT_EQ(pages(), before) << "round " << round;
    EXPECT_EQ(dirty_bytes(), 0u);
    steps.release("owner");
  }
  owner.join();
}

}  // namespace
}  // namespace ebb::test
