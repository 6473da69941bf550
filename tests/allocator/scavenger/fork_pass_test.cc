// fork in the middle of the scavenger's and the threads' work, each moment forced. The child of each test allocates,
// frees what threads that are gone had allocated, collects, parks, starts threads, forks again, and has a scavenger of
// its own that returns what nobody asks for.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "child_process.h"
#include "driven_scavenger.h"
#include "heap/books.h"
#include "heap/thread.h"
#include "interleaving.h"
#include "stats/counters.h"

namespace ebb::test {
namespace {

class ForkPass : public DrivenScavenger {
 protected:
  void make_due(int spans) {
    std::vector<void*> free_ones;
    for (int i = 0; i < spans; ++i) {
      free_ones.push_back(make_touched(2 * MiB));
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

// The limit of the child ends a wait in vain.
template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) usleep(1000);
}

// Runs `checks` and what every child must be able to do; the real clock runs there.
template <class Body>
int run_child(Body checks_of_test) {
  return run_in_child([&](ChildChecks& checks) {
    g_test_point_hook = nullptr;
    os::g_fault_hook = nullptr;
    os::set_clock_for_test(nullptr);
    checks_of_test(checks);
    std::vector<unsigned char*> blocks;
    for (size_t i = 0; i < 2000; ++i) {
      blocks.push_back(static_cast<unsigned char*>(ebb_calloc(1, 16 + i % 3000)));
      checks.expect(blocks.back() != nullptr && blocks.back()[15 + i % 3000] == 0);
      memset(blocks.back(), 0x44, 16 + i % 3000);
    }
    checks.expect(run_in_child([&blocks](ChildChecks& inner) {
      for (unsigned char* p : blocks) inner.expect(p[0] == 0x44);
      for (unsigned char* p : blocks) ebb_free(p);
      ebb_collect(true);
      inner.expect(arenas_are_valid());
    }) == 0);
    for (unsigned char* p : blocks) ebb_free(p);
#if !defined(__SANITIZE_THREAD__)  // its runtime starts no threads in a child of a threaded process
    checks.expect(ebb_park_begin());
    ebb_park_end();
    std::thread([] { ebb_free(memset(ebb_malloc(5000), 1, 5000)); }).join();
    void* p = memset(ebb_malloc(8 * MiB), 1, 8 * MiB);
    ebb_free(p);
    wait_until([] { return books().dirty_bytes == 0; });
#endif
    ebb_collect(true);
    checks.expect(books().dirty_bytes == 0);
    checks.expect(arenas_are_valid());
  });
}

#if !defined(__SANITIZE_THREAD__)
// Case 29: what the threads of the parent had freed and kept is free in the child, and no thread of it frees again.
TEST_F(ForkPass, ChildReturnsWhatWasFreeAtTheForkThoughItFreesNothing) {
  Interleaving steps;
  steps.hold("owner", "park.begun");
  std::thread owner = steps.run("owner", [] {
    std::vector<void*> blocks;
    for (int i = 0; i < 20000; ++i) blocks.push_back(make_touched(500));
    for (void* p : blocks) ebb_free(p);
    ebb_park_begin();
    ebb_park_end();
  });
  steps.wait_until_held("owner");
  ebb_free(make_touched(4 * MiB));
  EXPECT_GE(dirty_bytes(), 4 * MiB);
  int code = run_in_child([](ChildChecks& checks) {
    os::g_fault_hook = nullptr;
    os::set_clock_for_test(nullptr);
    // Any slow path will do.
    for (int i = 0; i < 300; ++i) checks.expect(ebb_malloc(3000) != nullptr);
    wait_until([] { return dirty_bytes() == 0; });
  });
  EXPECT_EQ(code, 0);
  steps.release("owner");
  owner.join();
}
#endif

#if !defined(__SANITIZE_THREAD__)
// The parent's scavenger knew of a little dirty memory; the child's is told anew.
TEST_F(ForkPass, ChildIsToldOfItsOwnFreesThoughTheArenaWasArmedInTheParent) {
  ebb_free(make_touched(300 * KiB));
  EXPECT_GE(armings_, 1);
  int code = run_in_child([](ChildChecks&) {
    os::g_fault_hook = nullptr;
    os::set_clock_for_test(nullptr);
    ebb_free(make_touched(8 * MiB));
    wait_until([] { return dirty_bytes() == 0; });
  });
  EXPECT_EQ(code, 0);
}
#endif

TEST_F(ForkPass, WaitsForThePurgeStepThatIsUnderWayAndNoLonger) {
  make_due(6);
  Interleaving steps;
  steps.hold("pass", "purge.before_os");
  std::thread running = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  int code = -1;
  steps.hold("forker", "lock.wait");
  std::thread forker = steps.run("forker", [&] {
    code = run_child([](ChildChecks& checks) {
      for (int i = 0; i < 8; ++i) {
        unsigned char* p = static_cast<unsigned char*>(ebb_calloc(1, 2 * MiB));
        for (size_t k = 0; k < 2 * MiB; k += 512) checks.expect(p[k] == 0);
        memset(p, 1, 2 * MiB);
      }
      checks.expect(arenas_are_valid());
    });
  });
  EXPECT_TRUE(steps.wait_until_held_or_ended("forker")) << "a child was made with a step half done";
  steps.release("pass", "purge.between");
  steps.wait_until_held("pass");
  if (!steps.has_ended("forker")) steps.release("forker");
  forker.join();
  EXPECT_EQ(code, 0);
  steps.release("pass");
  running.join();
}

TEST_F(ForkPass, WaitsForTheLookAtATableThatIsUnderWay) {
  ebb_free(make_touched(8 * MiB));
  Interleaving steps;
  steps.hold("collector", "table.before_os");
  std::thread running = steps.run("collector", [] { ebb_collect(true); });
  steps.wait_until_held("collector");
  int code = -1;
  steps.hold("forker", "lock.wait");
  std::thread forker = steps.run("forker", [&] {
    code = run_child([](ChildChecks& checks) { checks.expect(arenas_are_valid()); });
  });
  EXPECT_TRUE(steps.wait_until_held_or_ended("forker")) << "a child was made with a span out of its arena";
  steps.release("collector");
  if (!steps.has_ended("forker")) steps.release("forker");
  forker.join();
  EXPECT_EQ(code, 0);
  running.join();
}

TEST_F(ForkPass, BetweenDisarmingAndReading) {
  make_due(3);
  Interleaving steps;
  steps.hold("pass", "purge.disarmed");
  std::thread running = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  EXPECT_EQ(run_child([](ChildChecks&) {}), 0);
  steps.release("pass");
  running.join();
}

// The child inherits no forced purge: what is freed there keeps its delay.
TEST_F(ForkPass, DuringAForcedCollect) {
  make_due(3);
  Interleaving steps;
  steps.hold("forced", "purge.drained");
  std::thread forced = steps.run("forced", [] { ebb_collect(true); });
  steps.wait_until_held("forced");
  void* young = make_touched(2 * MiB);
  int code = run_child([young](ChildChecks& checks) {
    // Half of the circle of generations later everything would lie before the forced purge.
    for (int i = 0; i < 140; ++i) {
      scavenger_pass(now_);
      begin_generation();
    }
    ebb_free(young);
    for (int i = 0; i < 3; ++i) {
      scavenger_pass(now_);
      checks.expect(dirty_bytes() >= 2 * MiB);
      begin_generation();
    }
  });
  EXPECT_EQ(code, 0);
  steps.release("forced");
  forced.join();
  ebb_free(young);
}

TEST_F(ForkPass, WhileAThreadIsParked) {
  Interleaving steps;
  std::vector<unsigned char*> blocks(2000);
  std::thread owner = steps.run("owner", [&] {
    for (unsigned char*& p : blocks) p = static_cast<unsigned char*>(make_touched(900));
    steps.hold("owner", "park.begun");
    ebb_park_begin();
    ebb_park_end();
    for (unsigned char* p : blocks) ebb_free(p);
  });
  steps.wait_until_held("owner");
  int code = run_child([&blocks](ChildChecks& checks) {
    for (unsigned char* p : blocks) checks.expect(p[0] == 0x77 && memcmp(p, p + 1, 899) == 0);
    for (unsigned char* p : blocks) ebb_free(p);
  });
  EXPECT_EQ(code, 0);
  steps.release("owner");
  owner.join();
}

// tests/models/park.pml, FORK_WITHOUT_REGISTRY.
TEST_F(ForkPass, WhileAThreadIsSweptWaitsForThatClass) {
  Interleaving steps;
  std::vector<unsigned char*> blocks(2000);
  std::thread owner = steps.run("owner", [&] {
    for (unsigned char*& p : blocks) p = static_cast<unsigned char*>(make_touched(900));
    steps.hold("owner", "park.begun");
    ebb_park_begin();
    ebb_park_end();
    for (unsigned char* p : blocks) ebb_free(p);
  });
  steps.wait_until_held("owner");
  let_time_pass_ms(250);
  steps.hold("pass", "sweep.step");
  std::thread sweeper = steps.run("pass", [] { pass(); });
  steps.wait_until_held("pass");
  int code = -1;
  steps.hold("forker", "lock.wait");
  std::thread forker = steps.run("forker", [&] {
    code = run_child([&blocks](ChildChecks& checks) {
      for (unsigned char* p : blocks) checks.expect(p[0] == 0x77 && p[899] == 0x77);
      for (unsigned char* p : blocks) ebb_free(p);
    });
  });
  EXPECT_TRUE(steps.wait_until_held_or_ended("forker")) << "a child was made with a sweep half done";
  steps.release("pass");
  if (!steps.has_ended("forker")) steps.release("forker");
  forker.join();
  sweeper.join();
  EXPECT_EQ(code, 0);
  steps.release("owner");
  owner.join();
}

TEST_F(ForkPass, ByAThreadThatIsParkedItself) {
  int code = -1;
  std::thread([&code] {
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(make_touched(400));
    ebb_park_begin();
    code = run_child([&blocks](ChildChecks& checks) {
      checks.expect(thread_self_if_any()->gate.load() == kParked);
      for (void* p : blocks) ebb_free(p);
      checks.expect(ebb_malloc(100) != nullptr);
      checks.expect(thread_self_if_any()->gate.load() == kRunning);
    });
    ebb_park_end();
    for (void* p : blocks) ebb_free(p);
  }).join();
  EXPECT_EQ(code, 0);
}

// The ending thread gives its pages up, inside its gate: fork waits for it.
TEST_F(ForkPass, WhileAThreadIsEnding) {
  Interleaving steps;
  void* kept = nullptr;
  std::thread ending = steps.run("ending", [&] {
    kept = make_touched(100);
    steps.hold("ending", "remote.release");
    ebb_collect(false);
    ebb_free(make_touched(3000));
  });
  steps.wait_until_held("ending");
  int code = -1;
  steps.hold("forker", "gate.freezing");
  std::thread forker = steps.run("forker", [&] {
    code = run_child([kept](ChildChecks& checks) {
      ebb_free(kept);
      ebb_collect(true);
      checks.expect(books().page_count <= 1);  // at most one of this thread
    });
  });
  EXPECT_TRUE(steps.wait_until_held_or_ended("forker")) << "a child was made with a slow path half done";
  steps.release("ending");
  if (!steps.has_ended("forker")) steps.release("forker");  // it has the registry's lock, which the end needs
  forker.join();
  ending.join();
  EXPECT_EQ(code, 0);
  ebb_free(kept);
}

// A parked thread's free has claimed a page and is about to give it up again, outside any gate: no other thread of the
// child will.
TEST_F(ForkPass, WhileAFreeHasClaimedAPage) {
  std::vector<void*> blocks;
  std::thread([&] {
    for (int i = 0; i < 40; ++i) blocks.push_back(make_touched(1500));
  }).join();
  size_t before = books().page_count;
  Interleaving steps;
  std::thread freer = steps.run("freer", [&] {
    ebb_free(ebb_malloc(8));
    ebb_park_begin();
    steps.hold("freer", "remote.release");
    while (steps.count("freer", "remote.release") == 0) {
      ebb_free(blocks.back());
      blocks.pop_back();
    }
    ebb_park_end();
  });
  steps.wait_until_held("freer");
  int code = run_child([&](ChildChecks& checks) {
    size_t in_the_childs_hand = blocks.size() - 1;  // the freer has freed the last one, and not taken it out
    for (size_t i = 0; i < in_the_childs_hand; ++i) ebb_free(blocks[i]);
    ebb_collect(true);
    checks.expect(books().page_count < before);
  });
  EXPECT_EQ(code, 0);
  steps.release("freer");
  freer.join();
  for (void* p : blocks) ebb_free(p);
}

#if !defined(__SANITIZE_THREAD__)
// tests/models/holes.pml, FORK_TRUSTS_COUNT: a thread has released a sparse page and not counted it yet.
TEST_F(ForkPass, BetweenTheReleaseOfASparsePageAndItsCount) {
  std::vector<void*> kept = leave_sparse_pages(512, 1, 16);
  settle();  // punched; the free of half of what is left makes it sparse again
  Interleaving steps;
  steps.hold("freer", "page.released");
  std::thread freer = steps.run("freer", [&kept] {
    for (size_t i = kept.size() / 2; i < kept.size(); ++i) ebb_free(kept[i]);
  });
  steps.wait_until_held("freer");
  int code = run_in_child([](ChildChecks& checks) {
    os::g_fault_hook = nullptr;
    os::set_clock_for_test(nullptr);
    uint64_t before = counted(Counter::k_holes_bytes);
    for (int i = 0; i < 300; ++i) checks.expect(ebb_malloc(3000) != nullptr);
    wait_until([before] { return counted(Counter::k_holes_bytes) > before; });
  });
  EXPECT_EQ(code, 0);
  steps.release("freer");
  freer.join();
  for (size_t i = 0; i < kept.size() / 2; ++i) ebb_free(kept[i]);
}
#endif

}  // namespace
}  // namespace ebb::test
