// fork at any moment: from a thread among others that allocate, free, hand over and end. The child frees blocks of
// threads that it does not have, allocates, collects, starts threads and forks again.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "books.h"
#include "child_process.h"
#include "ebb/ebb.hpp"
#include "os/fault.h"
#include "test_point_script.h"

namespace ebb::test {
namespace {

size_t size_of(size_t i) { return 1 + i * 37 % (i % 16 == 0 ? 90000 : 1500); }

bool holds(const unsigned char* p, size_t i) {
  size_t size = size_of(i);
  unsigned char mark = static_cast<unsigned char>(i * 7 + 1);
  return p[0] == mark && memcmp(p, p + 1, size - 1) == 0;
}

unsigned char* make(size_t i) {
  unsigned char* p = static_cast<unsigned char*>(ebb_malloc(size_of(i)));
  if (p != nullptr) memset(p, static_cast<int>(i * 7 + 1) & 0xFF, size_of(i));
  return p;
}

// AddressSanitizer of these compilers does not hold its own locks over a fork: a child in which some thread had its
// allocator's, or that of its list of threads, waits for it for ever. So the threads beside a fork, and the children,
// take nothing from its malloc; and under it no thread begins or ends beside a fork.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kThreadsComeAndGo = false;
#else
constexpr bool kThreadsComeAndGo = true;
#endif
using Held = std::vector<std::pair<unsigned char*, size_t>, ebb::allocator<std::pair<unsigned char*, size_t>>>;

// Allocates, checks, resizes and frees; false when a byte was wrong.
bool use_the_allocator(unsigned seed, int count) {
  std::mt19937 random(seed);
  Held held;
  bool good = true;
  for (int step = 0; step < count; ++step) {
    if (held.size() < 50 || random() % 2 == 0) {
      size_t i = random() % 5000;
      held.emplace_back(make(i), i);
    } else {
      size_t which = random() % held.size();
      good = good && holds(held[which].first, held[which].second);
      ebb_free(held[which].first);
      held[which] = held.back();
      held.pop_back();
    }
  }
  for (auto [p, i] : held) {
    good = good && holds(p, i);
    ebb_free(p);
  }
  return good;
}

// Threads that allocate blocks which stay, and then go on allocating and freeing others until told to stop; some end
// and are followed by new ones.
class Crowd {
 public:
  static constexpr size_t kThreads = 4, kStaying = 400;

  Crowd() {
    for (size_t number = 0; number < kThreads; ++number) {
      threads_.emplace_back([this, number] {
        for (size_t i = number; i < kThreads * kStaying; i += kThreads) staying[i] = make(i);
        ready_.fetch_add(1);
        for (unsigned turn = 0; !stop_; ++turn) {
          unsigned seed = static_cast<unsigned>(number) + turn * 16;
          if (turn % 2 == 0 || !kThreadsComeAndGo) {
            good_ = use_the_allocator(seed, 400) && good_;
          } else {
            std::thread([this, seed] { good_ = use_the_allocator(seed, 300) && good_; }).join();
          }
        }
      });
    }
    while (ready_.load() < static_cast<int>(kThreads)) std::this_thread::yield();
  }
  ~Crowd() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    for (unsigned char* p : staying) ebb_free(p);
    EXPECT_TRUE(good_);
  }

  // In a child: the blocks that stayed are whole, and free.
  void check_and_free(ChildChecks& checks) {
    bool good = true;
    for (size_t i = 0; i < staying.size(); ++i) good = good && holds(staying[i], i);
    checks.expect(good);
    for (unsigned char* p : staying) ebb_free(p);
  }

  std::vector<unsigned char*> staying = std::vector<unsigned char*>(kThreads * kStaying);

 private:
  std::vector<std::thread> threads_;
  std::atomic<int> ready_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> good_{true};
};

#if defined(__SANITIZE_THREAD__)
constexpr int kForks = 10;
#else
constexpr int kForks = 40;
#endif

TEST(Fork, ChildFreesBlocksOfThreadsThatItDoesNotHave) {
  Crowd crowd;
  for (int i = 0; i < kForks; ++i) {
    int code = run_in_child([&crowd, i](ChildChecks& checks) {
      checks.expect(arenas_are_valid());
      if (i % 2 == 0) crowd.check_and_free(checks);
      checks.expect(use_the_allocator(static_cast<unsigned>(i), 2000));
      if (i % 2 == 1) crowd.check_and_free(checks);
      ebb_collect(true);
      checks.expect(arenas_are_valid());
      checks.expect(books().dirty_bytes < 1 * MiB);
    });
    ASSERT_EQ(code, 0) << "fork " << i;
  }
}

TEST(Fork, ChildForksAgain) {
  Crowd crowd;
  for (int i = 0; i < kForks / 4; ++i) {
    int code = run_in_child([&crowd](ChildChecks& checks) {
      checks.expect(use_the_allocator(1, 500));
      checks.expect(run_in_child([&crowd](ChildChecks& inner) {
        crowd.check_and_free(inner);
        inner.expect(run_in_child([](ChildChecks& last) { last.expect(use_the_allocator(3, 500)); }) == 0);
        inner.expect(use_the_allocator(2, 500));
      }) == 0);
      crowd.check_and_free(checks);
    });
    ASSERT_EQ(code, 0) << "fork " << i;
  }
}

TEST(Fork, EveryThreadOfTheCrowdMayFork) {
  Crowd crowd;
  std::atomic<int> wrong{0};
  std::vector<std::thread> forkers;
  constexpr unsigned kForkers = 3;
  std::barrier all(kForkers);
  for (unsigned number = 0; number < kForkers; ++number) {
    forkers.emplace_back([&, number] {
      all.arrive_and_wait();
      for (int i = 0; i < kForks / 6; ++i) {
        void* own = ebb_malloc(1000 + number);
        wrong += run_in_child([&](ChildChecks& checks) {
          ebb_free(own);
          crowd.check_and_free(checks);
          checks.expect(use_the_allocator(number, 1000));
        }) != 0;
        ebb_free(own);
      }
      all.arrive_and_wait();
    });
  }
  for (std::thread& forker : forkers) forker.join();
  EXPECT_EQ(wrong, 0);
}

#if !defined(__SANITIZE_THREAD__)  // its runtime cannot start threads in a child of a threaded process
TEST(Fork, ChildStartsThreadsAndGetsAScavengerOfItsOwn) {
  Crowd crowd;
  for (int i = 0; i < kForks / 6; ++i) {
    int code = run_in_child([](ChildChecks& checks) {
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      for (unsigned seed = 0; seed < 3; ++seed) threads.emplace_back([&wrong, seed] { wrong += !use_the_allocator(seed, 1000); });
      for (std::thread& thread : threads) thread.join();
      checks.expect(wrong == 0);
      // 32 MiB that nobody asks for again must leave by themselves; the limit of the child ends a wait in vain.
      void* p = ebb_malloc(32 * MiB);
      memset(p, 1, 32 * MiB);
      ebb_free(p);
      while (books().dirty_bytes > 4 * MiB) std::this_thread::yield();
      checks.expect(true);
    });
    ASSERT_EQ(code, 0) << "fork " << i;
  }
}
#endif

// A thread is held while it makes a further reservation: the child must not inherit it half done.
TEST(Fork, ChildMayReserveThoughAnotherThreadWasReserving) {
  static Event* reserving;
  static std::atomic<bool> has_forked;
  Event event;
  reserving = &event;
  has_forked = false;
  ebb_free(ebb_malloc(1));
  os::g_fault_hook = [](const char* call, const void*, size_t) {
    if (strcmp(call, "reserve") != 0 || has_forked) return false;
    reserving->set();
    // A fork that does not wait for the reservation is over by then; one that does is not hindered.
    for (int i = 0; i < 200 && !has_forked; ++i) usleep(1000);
    return false;
  };
  std::thread other([] { ebb_free(ebb_malloc(size_t{1} << 44)); });  // more than the first reservation has
  event.wait("a reservation");
  int code = run_in_child([](ChildChecks& checks) {
    has_forked = true;
    void* p = ebb_malloc(size_t{1} << 43);
    if (p != nullptr) static_cast<char*>(p)[1 << 20] = 1;
    ebb_free(p);
    checks.expect(use_the_allocator(1, 1000));
  });
  has_forked = true;
  other.join();
  os::g_fault_hook = nullptr;
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace ebb::test
