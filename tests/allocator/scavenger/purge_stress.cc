// Sixteen threads that allocate, resize, hand over and free, with every live byte checked, round after round; then
// they spin, block, park, or end while parked, and nothing that is free may stay with the process: the scavenger, whose
// clock the test moves, returns all of it, and so does a forced collect. Forks happen in the middle.
//
// EBB_STRESS_ROUNDS=750 for the full length; the default is short.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "arena/arena_list.h"
#include "base/compiler.h"
#include "base/units.h"
#include "child_process.h"
#include "heap/books.h"
#include "os/os.h"
#include "stress/worker.h"

namespace ebb::test {
namespace {

constexpr int kThreads = 16;
constexpr int kStepsARound = 300;
constexpr Limits kLimits{3 * MiB, 2 * MiB};
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(EBB_DEBUG)
constexpr int kDefaultRounds = 15;
#else
constexpr int kDefaultRounds = 20;
#endif

int rounds() {
  const char* text = getenv("EBB_STRESS_ROUNDS");
  int number = text != nullptr ? atoi(text) : 0;
  return number > 0 ? number : kDefaultRounds;
}

std::atomic<uint64_t> g_now{1'000'000'000};

size_t dirty_bytes() {
  size_t bytes = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) bytes += arena->usage().dirty_bytes;
  return bytes;
}

// What a thread does when its work is over and everything that it held is free.
enum class Rest { kSpins, kBlocks, kParks, kEndsParked };
constexpr int kRests = 4;

Rest rest_of(int thread, int round) { return static_cast<Rest>((round + thread) % kRests); }

class PurgeStress : public testing::Test {
 protected:
  void SetUp() override { os::set_clock_for_test([] { return g_now.load(); }); }
  void TearDown() override { os::set_clock_for_test(nullptr); }

  // `settles`: the scavenger is to return everything by itself, while the threads rest.
  void run(bool settles) {
    for (int round = 0; round < rounds() && !failed_; ++round) {
      std::vector<std::thread> threads;
      std::barrier working(kThreads + 1), resting(kThreads + 1);
      is_over_ = false;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          work(static_cast<unsigned>(round * kThreads + i));
          working.arrive_and_wait();
          empty_exchange(i);
          rest(rest_of(i, round), resting);
        });
      }
      if (round % 5 == 4) fork_once(round);
      move_clock_until([&] { return done_ == kThreads; });
      done_ = 0;
      working.arrive_and_wait();
      resting.arrive_and_wait();
      if (settles) {
        move_clock_until([] { return dirty_bytes() == 0; });
      } else {
        // Without a scavenger, what a thread gives back as it ends waits for a collect that begins later.
        for (int i = 0; i < kThreads; ++i) {
          if (rest_of(i, round) == Rest::kEndsParked) threads[i].join();
        }
      }
      ebb_collect(true);
      EXPECT_EQ(dirty_bytes(), 0u) << "round " << round;
      EXPECT_TRUE(arenas_are_valid()) << "round " << round;
      is_over_ = true;
      for (std::thread& thread : threads) {
        if (thread.joinable()) thread.join();
      }
    }
    EXPECT_FALSE(failed_);
    ebb_collect(true);
    EXPECT_EQ(books().page_count, 0u);
    EXPECT_EQ(books().large_count, 0u);
    EXPECT_EQ(dirty_bytes(), 0u);
  }

 private:
  void work(unsigned seed) {
    Worker worker(seed, exchange_, kLimits);
    bool good = true;
    for (int step = 0; good && step < kStepsARound; ++step) {
      good = worker.step();
      if (step % 40 == 39) {
        ebb_park_begin();
        if (seed % 3 == 0) ebb_free(ebb_malloc(seed % 5000));
        std::this_thread::yield();
        ebb_park_end();
      }
    }
    note(good && worker.finish(), worker);
    ++done_;
  }
  // What nobody has taken over is freed by one thread, mostly not the one that made it.
  void empty_exchange(int number) {
    if (number != 0) return;
    Worker last(0, exchange_, kLimits);
    for (Held& block : exchange_.drain()) note(last.check_and_free(block), last);
  }
  void rest(Rest how, std::barrier<>& resting) {
    if (how == Rest::kParks || how == Rest::kEndsParked) ebb_park_begin();
    resting.arrive_and_wait();
    if (how == Rest::kEndsParked) return;
    while (!is_over_) {
      if (how != Rest::kSpins) {
        usleep(300);
      } else {
        for (int i = 0; i < 2000; ++i) cpu_relax();
        sched_yield();
      }
    }
    if (how == Rest::kParks) {
      ebb_park_end();
      ebb_free(ebb_malloc(1000));
    }
  }
  void fork_once(int round) {
    int code = run_in_child([round](ChildChecks& checks) {
      os::set_clock_for_test(nullptr);
      Exchange own;
      Worker worker(static_cast<unsigned>(round), own, kLimits);
      for (int step = 0; step < 300; ++step) checks.expect(worker.step());
      checks.expect(worker.finish());
      Worker last(0, own, kLimits);
      for (Held& block : own.drain()) checks.expect(last.check_and_free(block));
      ebb_collect(true);
      checks.expect(dirty_bytes() == 0);
      checks.expect(arenas_are_valid());
    });
    if (code != 0) failed_ = true;
    EXPECT_EQ(code, 0) << "the child of round " << round;
  }
  void note(bool good, const Worker& worker) {
    if (good || failed_.exchange(true)) return;
    ADD_FAILURE() << worker.error();
  }
  template <class Condition>
  void move_clock_until(Condition condition) {
    constexpr int kMost = 400'000;  // looks, of a fraction of a millisecond each
    for (int looks = 0; !condition() && !failed_; ++looks) {
      usleep(200);
      g_now += 1'000'000;
      if (looks < kMost) continue;
      failed_ = true;
      ADD_FAILURE() << dirty_bytes() << " bytes are free and stay";
    }
  }

  Exchange exchange_;
  std::atomic<bool> failed_{false}, is_over_{false};
  std::atomic<int> done_{0};
};

TEST_F(PurgeStress, ScavengerOff) {
  ASSERT_TRUE(ebb_option_set("scavenger", 0));
  run(false);
}

TEST_F(PurgeStress, ScavengerOn) {
  ASSERT_TRUE(ebb_option_set("scavenger", 1));
  run(true);
}

TEST_F(PurgeStress, ScavengerEager) {
  ASSERT_TRUE(ebb_option_set("scavenger", 2));
  run(true);
  ASSERT_TRUE(ebb_option_set("scavenger", 1));
}

}  // namespace
}  // namespace ebb::test
