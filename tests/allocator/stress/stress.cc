// Eight threads that allocate, resize, hand over and free blocks of all sizes and alignments, checking every byte,
// while others collect, park, end and begin. Links Ebb by its ebb_ names, so that it runs under every sanitizer.
//
//   stress [--seconds=N] [--seed=N] [GoogleTest's options]      5 s and a seed of 1 by default
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "ebb/ebb.h"
#include "worker.h"

namespace ebb::test {
namespace {

int g_seconds = 5;
unsigned g_seed = 1;

constexpr int kThreads = 8;

class Stress : public testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  // Workers of `kThreads` threads at a time until the time is over. Each thread ends after `steps_a_thread` and is
  // replaced by a new one; what it holds then is handed on, so blocks outlive their threads.
  void run(std::chrono::milliseconds duration, uint64_t steps_a_thread, const Limits& limits) {
    Clock::time_point end = Clock::now() + duration;
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < kThreads; ++lane) {
      lanes.emplace_back([=, this] {
        for (unsigned turn = 0; Clock::now() < end && !failed_; ++turn) {
          std::thread thread([=, this] { work(g_seed + static_cast<unsigned>(lane) * 1000 + turn, end, steps_a_thread, limits); });
          thread.join();
        }
      });
    }
    for (std::thread& lane : lanes) lane.join();
    Worker last(0, exchange_, limits);
    for (Held& block : exchange_.drain()) {
      if (!last.check_and_free(block)) note(last.error());
    }
    EXPECT_FALSE(failed_) << error_;
    printf("%llu operations by %d threads\n", static_cast<unsigned long long>(operations_.load()), threads_made_.load());
  }

 private:
  void work(unsigned seed, Clock::time_point end, uint64_t steps, const Limits& limits) {
    Worker worker(seed, exchange_, limits);
    ++threads_made_;
    bool good = true;
    for (uint64_t step = 1; good && step <= steps && !failed_; ++step) {
      good = worker.step();
      if (step % 512 == 0 && Clock::now() >= end) break;
      if (step % 3001 == 0) ebb_collect(step % 2 == 0);
      if (step % 1777 == 0) park();
    }
    if (!good || !worker.finish()) note(worker.error());
    operations_ += worker.operations();
  }
  // A blocking wait, as an event loop has; the thread lies by freeing in it.
  void park() {
    void* p = ebb_malloc(100);
    ebb_park_begin();
    std::this_thread::yield();
    ebb_free(p);
    ebb_park_end();
  }
  void note(const std::string& error) {
    std::lock_guard guard(mutex_);
    if (!failed_) error_ = error;
    failed_ = true;
  }

  Exchange exchange_;
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> operations_{0};
  std::atomic<int> threads_made_{0};
  std::mutex mutex_;
  std::string error_;
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr Limits kLimits{size_t{8} << 20, size_t{6} << 20};
#else
constexpr Limits kLimits{};
#endif

std::chrono::milliseconds share(int percent) { return std::chrono::milliseconds(g_seconds * 10 * percent); }

TEST_F(Stress, LongLivedThreads) { run(share(60), UINT64_MAX, kLimits); }

TEST_F(Stress, ThreadsThatComeAndGo) { run(share(20), 700, kLimits); }

TEST_F(Stress, EagerScavenger) {
  ASSERT_TRUE(ebb_option_set("scavenger", 2));
  run(share(20), 20000, kLimits);
  ASSERT_TRUE(ebb_option_set("scavenger", 1));
}

// After everything was freed nothing stays but what the books say.
TEST_F(Stress, NothingIsLeftBehind) {
  ebb_collect(true);
  ebb_stats_t stats;
  ASSERT_TRUE(ebb_stats_get(&stats, sizeof(stats)));
  EXPECT_EQ(stats.large_count, 0u);
  EXPECT_LT(stats.dirty_bytes, size_t{1} << 20) << "free memory that was not returned";
  EXPECT_EQ(stats.live_blocks, 0u);
}

// The value of --name=N, or -1.
int number_option(const char* argument, const char* name) {
  size_t length = strlen(name);
  return strncmp(argument, name, length) == 0 && argument[length] == '=' ? atoi(argument + length + 1) : -1;
}

}  // namespace
}  // namespace ebb::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    int seconds = ebb::test::number_option(argv[i], "--seconds");
    int seed = ebb::test::number_option(argv[i], "--seed");
    if (seconds <= 0 && seed < 0) {
      fprintf(stderr, "stress: %s means nothing here; use --seconds=N or --seed=N\n", argv[i]);
      return 2;
    }
    if (seconds > 0) ebb::test::g_seconds = seconds;
    if (seed >= 0) ebb::test::g_seed = static_cast<unsigned>(seed);
  }
  return RUN_ALL_TESTS();
}
