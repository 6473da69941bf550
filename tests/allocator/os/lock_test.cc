// The lock: one holder, no lost wake-up, and in debug builds an order that is enforced.
#include "os/lock.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <thread>
#include <vector>

#include "child_process.h"

namespace ebb {
namespace {

TEST(Lock, OneHolderAtATime) {
  Lock lock(LockRank::kArena);
  int unguarded = 0;
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5000; ++round) {
        LockGuard guard(lock);
        wrong += inside.fetch_add(1) != 0;
        ++unguarded;
        if (round % 64 == 0) std::this_thread::yield();  // others run into the held lock and sleep
        inside.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unguarded, 30000);
  EXPECT_EQ(wrong, 0);
}

TEST(Lock, TryLockFailsWhileHeldAndHoldsWhenItDoesNot) {
  Lock lock(LockRank::kArena);
  ASSERT_TRUE(lock.try_lock());
  bool second = true;
  std::thread([&] { second = lock.try_lock(); }).join();
  EXPECT_FALSE(second);
  lock.unlock();
  ASSERT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(Lock, IsOpenToTheThreadThatHoldsEveryLockAndStaysHeld) {
  Lock held(LockRank::kArena), free(LockRank::kArena);
  held.lock();
  tls_holds_every_lock = true;
  held.lock();
  EXPECT_TRUE(held.try_lock());
  held.unlock();
  free.lock();
  free.unlock();
  bool taken = true;
  std::thread([&] { taken = held.try_lock(); }).join();
  EXPECT_FALSE(taken);
  tls_holds_every_lock = false;
  held.open_after_fork();
  free.open_after_fork();
  lock_rank_forget_all();
  LockGuard first(held), second(free);
}

TEST(Lock, LocksOfHigherRankMayBeTakenAndSeveralOfOne) {
  Lock registry(LockRank::kThreadRegistry), first(LockRank::kArena), second(LockRank::kArena), pool(LockRank::kMetaPool);
  LockGuard a(registry);
  LockGuard b(first);
  LockGuard c(second);
  LockGuard d(pool);
}

#if defined(EBB_DEBUG)
// In children that take the locks themselves: fork takes locks of every rank.
TEST(LockOrder, ALockOfLowerRankStopsTheProcess) {
  int code = test::run_in_child([](test::ChildChecks&) {
    Lock arena(LockRank::kArena), heap(LockRank::kHeap);
    LockGuard guard(arena);
    heap.lock();
  });
  EXPECT_EQ(code, -SIGABRT);
}
TEST(LockOrder, UnlockingWhatIsNotHeldStopsTheProcess) {
  int code = test::run_in_child([](test::ChildChecks&) { Lock(LockRank::kArena).unlock(); });
  EXPECT_EQ(code, -SIGABRT);
}
#endif

}  // namespace
}  // namespace ebb
