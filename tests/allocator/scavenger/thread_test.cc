// The scavenger's own thread, with a clock that the tests move: what they wait for happens when it is due, however slow
// the machine is. Words that could be lost between its last look and its sleep are spoken exactly there.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "arena/arena_list.h"
#include "child_process.h"
#include "heap/books.h"
#include "interleaving.h"
#include "os/fault.h"
#include "os/os.h"
#include "stats/counters.h"

namespace ebb::test {
namespace {

std::atomic<uint64_t> g_now{1'000'000'000};

size_t dirty_bytes() {
  size_t bytes = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) bytes += arena->usage().dirty_bytes;
  return bytes;
}

void free_fresh(size_t bytes) { ebb_free(memset(ebb_malloc(bytes), 1, bytes)); }

// Moves the clock until it happens. The child's limit ends a wait in vain.
template <class Condition>
void until(Condition condition) {
  for (int i = 0; !condition(); ++i) {
    usleep(500);
    g_now += 5'000'000;
  }
}

// Each test has a process in which no scavenger has started yet.
template <class Body>
int with_clock(Body body) {
  return run_in_child([&body](ChildChecks& checks) {
    os::set_clock_for_test([] { return g_now.load(); });
    body(checks);
  });
}

// The scavenger's thread stands between its last look and its sleep.
void hold_before_sleep(Interleaving& steps) {
  steps.cast_at("scavenger", "purge.disarmed");
  steps.hold("scavenger", "scavenger.sleep");
  free_fresh(4 * MiB);
  until([] { return dirty_bytes() == 0; });
  steps.wait_until_held("scavenger");
}

TEST(ScavengerThread, MemoryFreedBetweenItsLastLookAndItsSleepGoesBack) {
  EXPECT_EQ(with_clock([](ChildChecks& checks) {
    Interleaving steps;
    hold_before_sleep(steps);
    free_fresh(4 * MiB);
    checks.expect(dirty_bytes() >= 4 * MiB);
    steps.release("scavenger");
    until([] { return dirty_bytes() == 0; });
    _exit(0);  // the scavenger still plays
  }), 0);
}

// tests/models/park.pml, WAKES_SLEEPERS_ONLY.
TEST(ScavengerThread, AThreadThatParksBetweenItsLastLookAndItsSleepIsSwept) {
  EXPECT_EQ(with_clock([](ChildChecks& checks) {
    Interleaving steps;
    hold_before_sleep(steps);
    size_t before = books().page_count;
    std::thread owner([&] {
      for (size_t size : {140, 300, 700, 3000}) free_fresh(size);
      checks.expect(ebb_park_begin());
      checks.expect(books().page_count >= before + 4);
      steps.release("scavenger");
      until([before] { return books().page_count == before; });
      ebb_park_end();
    });
    owner.join();
    checks.end();
  }), 0);
}

TEST(ScavengerThread, ParkStartsItWhenThereIsWork) {
  EXPECT_EQ(with_clock([](ChildChecks& checks) {
    size_t before = books().page_count;
    std::thread([&] {
      for (size_t size : {140, 300, 700, 3000}) free_fresh(size);
      checks.expect(ebb_park_begin());
      until([before] { return books().page_count == before; });  // swept though nothing else ever happens
      ebb_park_end();
    }).join();
  }), 0);
}

TEST(ScavengerThread, ParkSweepsInlineAndSaysSoWhenNoThreadCanBeHad) {
  EXPECT_EQ(with_clock([](ChildChecks& checks) {
    os::g_fault_hook = [](const char* call, const void*, size_t) { return strcmp(call, "start_thread") == 0; };
    size_t before = books().page_count;
    std::thread([&] {
      for (int round = 0; round < 3; ++round) {
        for (size_t size : {140, 300, 700, 3000}) free_fresh(size);
        checks.expect(!ebb_park_begin());
        checks.expect(books().page_count == before);
        ebb_park_end();
      }
    }).join();
  }), 0);
}

#if !defined(__SANITIZE_THREAD__)  // its runtime makes a fork of it
// A vfork child shares the memory: what it frees is its parent's to return, and it starts no thread.
TEST(ScavengerThread, WhatAVforkChildFreesIsReturnedByItsParent) {
  EXPECT_EQ(with_clock([](ChildChecks& checks) {
    static void* block;
    block = memset(ebb_malloc(4 * MiB), 1, 4 * MiB);
    pid_t child = vfork();
    if (child == 0) {
      ebb_free(block);
      for (int i = 0; i < 400; ++i) ebb_free(ebb_malloc(100000));
      _exit(0);
    }
    int status = 0;
    checks.expect(waitpid(child, &status, 0) == child && status == 0);
    checks.expect(dirty_bytes() >= 4 * MiB);
    ebb_free(ebb_malloc(100000));
    until([] { return dirty_bytes() == 0; });
  }), 0);
}
#endif

TEST(ScavengerThread, SlowPathsOfManyThreadsPurgeWhenNoThreadCanBeHad) {
  EXPECT_EQ(with_clock([](ChildChecks& checks) {
    os::g_fault_hook = [](const char* call, const void*, size_t) { return strcmp(call, "start_thread") == 0; };
    free_fresh(4 * MiB);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int k = 0; k < 250; ++k) {
          free_fresh(100 * KiB);
          g_now += 1'000'000;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    // Slow paths go on, and purge.
    until([] {
      free_fresh(70 * KiB);
      return dirty_bytes() < 1 * MiB;
    });
    checks.expect(true);
  }), 0);
}

}  // namespace
}  // namespace ebb::test
