// The scavenger as a process meets it. Each test has a process of its own, in which nothing was freed before.
#include <gtest/gtest.h>

#include <dirent.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "child_process.h"
#include "heap/books.h"
#include "os/fault.h"
#include "os/os.h"
#include "scavenger/scavenger.h"
#include "stats/counters.h"
#include "test_point_script.h"

namespace ebb::test {
namespace {

int threads_of_process() {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

// Allocates, touches and frees so much.
void free_fresh(size_t bytes) {
  void* p = ebb_malloc(bytes);
  memset(p, 1, bytes);
  ebb_free(p);
}

size_t dirty_bytes() {
  ebb_stats_t stats;
  ebb_stats_get(&stats, sizeof(stats));
  return stats.dirty_bytes;
}

// The child's time limit ends a wait in vain.
template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

std::atomic<uint64_t> g_now_ns{1000000000};
uint64_t injected_clock() { return g_now_ns.load(); }

#define EXPECT_CHILD(...) EXPECT_EQ(run_in_child([](ChildChecks& checks) { __VA_ARGS__ }), 0)

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // their runtimes start threads of their own
TEST(Scavenger, AProgramThatFreesLittleStaysSingleThreaded) {
  EXPECT_CHILD(
    for (int i = 0; i < 1000; ++i) ebb_free(ebb_malloc(300));
    free_fresh(512 * KiB);
    checks.expect(threads_of_process() == 1);
  );
}

TEST(Scavenger, StartsWhenThereIsSomethingToReturnAndReturnsIt) {
  EXPECT_CHILD(
    free_fresh(32 * MiB);
    wait_until([] { return threads_of_process() == 2; });
    // The last step is counted when the OS call is over, a moment after nothing is dirty any more.
    wait_until([] { return dirty_bytes() == 0 && counted(Counter::k_purged_bytes) >= 32 * MiB; });
  );
}
#endif

TEST(Scavenger, ReturnsMemoryThoughEveryThreadSpins) {
  EXPECT_CHILD(
    std::atomic<bool> stop{false};
    std::atomic<int> spinning{0};
    std::vector<std::thread> spinners;
    for (int i = 0; i < 3; ++i) {
      spinners.emplace_back([&] {
        free_fresh(8 * MiB);
        ++spinning;
        while (!stop) cpu_relax();
      });
    }
    wait_until([&spinning] { return spinning == 3; });
    // One thread may have used what another had just freed: at least 8 MiB go back, and nothing stays.
    wait_until([] { return dirty_bytes() == 0 && counted(Counter::k_purged_bytes) >= 8 * MiB; });
    checks.expect(!stop);
    stop = true;
    for (std::thread& spinner : spinners) spinner.join();
  );
}

TEST(Scavenger, OffReturnsNothingByItselfAndEverythingWhenForced) {
  EXPECT_CHILD(
    ebb_option_set("scavenger", 0);
    free_fresh(16 * MiB);
    for (int i = 0; i < 100000; ++i) ebb_free(ebb_malloc(500));
    checks.expect(dirty_bytes() >= 15 * MiB);  // some of it serves the small blocks
    checks.expect(threads_of_process() == 1 || counted(Counter::k_purge_passes) == 0);
    ebb_collect(true);
    checks.expect(dirty_bytes() == 0);
    checks.expect(!ebb_park_begin());
    ebb_park_end();
  );
}

// No thread may be had: the slow paths purge, at the times that the thread would have chosen.
TEST(Scavenger, WithoutAThreadTheSlowPathsPurge) {
  EXPECT_CHILD(
    os::g_fault_hook = [](const char* call, const void*, size_t) { return strcmp(call, "start_thread") == 0; };
    os::set_clock_for_test(injected_clock);
    free_fresh(32 * MiB);
    checks.expect(dirty_bytes() >= 32 * MiB);
    for (int tick = 0; tick < 12; ++tick) {
      g_now_ns += 30000000;
      free_fresh(100 * KiB);
    }
    checks.expect(dirty_bytes() < 1 * MiB);
    checks.expect(counted(Counter::k_purged_bytes) >= 31 * MiB);  // some of it serves the small blocks
  );
}

TEST(Scavenger, APassPurgesWhatIsOldEnoughByTheInjectedClock) {
  EXPECT_CHILD(
    ebb_option_set("scavenger", 0);  // this thread is the scavenger
    free_fresh(8 * MiB);
    for (int age = 0; age < kPurgeAge; ++age) {
      scavenger_pass(g_now_ns);
      checks.expect(dirty_bytes() >= 8 * MiB);
      begin_generation();
    }
    scavenger_pass(g_now_ns);
    checks.expect(dirty_bytes() == 0);
  );
}

TEST(Scavenger, HolesArePunchedWhenMostOfAHeapIsFree) {
  EXPECT_CHILD(
    ebb_option_set("scavenger", 0);
    std::vector<unsigned char*> blocks;
    std::mt19937 random(1);
    for (size_t bytes = 0; bytes < 32 * MiB;) {
      size_t size = 1000 + random() % 3000;
      blocks.push_back(static_cast<unsigned char*>(ebb_malloc(size)));
      memset(blocks.back(), static_cast<int>(blocks.size()) & 0xFF, 1000);
      bytes += size;
    }
    size_t before = books().resident_bytes;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i % 10 != 0) ebb_free(blocks[i]);
    }
    ebb_collect(true);
    checks.expect(counted(Counter::k_holes_bytes) > 8 * MiB);
    checks.expect(books().resident_bytes < before / 2);
    bool intact = true;
    for (size_t i = 0; i < blocks.size(); i += 10) {
      unsigned char mark = static_cast<unsigned char>(i + 1);
      intact = intact && blocks[i][0] == mark && memcmp(blocks[i], blocks[i] + 1, 999) == 0;
    }
    checks.expect(intact);
  );
}

TEST(Park, HeapsAreSweptWhileTheThreadIsParkedAndSafeToUseMeanwhile) {
  EXPECT_CHILD(
    free_fresh(32 * MiB);  // starts the scavenger
    Event parked;
    Event go_on;
    bool was_handed_over = false;
    std::thread waiting([&] {
      std::vector<void*> blocks;
      for (int i = 0; i < 5000; ++i) blocks.push_back(ebb_malloc(200));
      void* kept = blocks.back();
      blocks.pop_back();
      for (void* p : blocks) ebb_free(p);
      was_handed_over = ebb_park_begin();
      parked.set();
      go_on.wait("the sweep");
      ebb_free(kept);                    // the remote way
      void* p = ebb_malloc(100);         // takes the heaps back
      memset(p, 1, 100);
      ebb_park_end();                    // without effect by now
      ebb_free(p);
    });
    parked.wait("the thread to park");
    uint64_t swept = counted(Counter::k_sweeps);
    wait_until([swept] { return counted(Counter::k_sweeps) > swept; });
    go_on.set();
    waiting.join();
    checks.expect(was_handed_over);
    ebb_collect(true);
    checks.expect(books().page_count == 0);
  );
}

TEST(Park, BeginningTwiceAndEndingWithoutABeginDoNoHarm) {
  EXPECT_CHILD(
    ebb_park_end();
    ebb_free(ebb_malloc(10));
    checks.expect(ebb_park_begin());
    checks.expect(ebb_park_begin());
    ebb_park_end();
    ebb_park_end();
    void* p = ebb_malloc(10);
    checks.expect(p != nullptr);
    ebb_free(p);
  );
}

// A parked thread's memory belongs to nobody in a fork child, and to the thread in the parent.
TEST(Park, ForkWhileThreadsAreParked) {
  EXPECT_CHILD(
    Event parked;
    Event go_on;
    std::vector<unsigned char*> blocks(300);
    std::thread waiting([&] {
      for (unsigned char*& p : blocks) p = static_cast<unsigned char*>(memset(ebb_malloc(700), 0x5B, 700));
      ebb_park_begin();
      parked.set();
      go_on.wait("the forks");
      ebb_park_end();
      for (unsigned char* p : blocks) ebb_free(p);
    });
    parked.wait("the thread to park");
    for (int i = 0; i < 5; ++i) {
      checks.expect(run_in_child([&blocks](ChildChecks& inner) {
        bool intact = true;
        for (unsigned char* p : blocks) intact = intact && p[0] == 0x5B && memcmp(p, p + 1, 699) == 0;
        inner.expect(intact);
        for (unsigned char* p : blocks) ebb_free(p);
        ebb_collect(true);
        inner.expect(books().page_count == 0);
      }) == 0);
    }
    go_on.set();
    waiting.join();
    ebb_collect(true);
    checks.expect(books().page_count == 0);
  );
}

}  // namespace
}  // namespace ebb::test
