// The word through which other threads free: every transition, then all of them at once.
#include "page/remote.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "page_bench.h"

namespace ebb::test {
namespace {

class Remote : public testing::Test {
 protected:
  // All blocks carved and handed out.
  void hand_all_out() {
    page_carve(page(), page()->capacity);
    while (bench_.pop() != nullptr) {
    }
    page()->owner.store(kNoOwner);
  }
  Page* page() { return bench_.page(); }
  uint64_t word() { return page()->remote.load(); }
  bool is_ownerless() { return (word() & remote::kOwnerless) != 0; }
  bool release(uint32_t remaining, bool sparse = false) {
    uint64_t expected = word();
    return remote::try_release(page(), &expected, remaining, sparse);
  }

  PageBench bench_{1024};
};

TEST_F(Remote, AnOwnedPageCountsWhatIsPushedAndIsNeverClaimed) {
  hand_all_out();
  for (uint32_t i = 0; i < page()->capacity; ++i) {
    EXPECT_FALSE(remote::push(page(), bench_.block(i)));
    EXPECT_EQ(remote::count_of(word()), i + 1);
    EXPECT_EQ(remote::head_of(page(), word()), bench_.block(i));
    EXPECT_FALSE(is_ownerless());
  }
  EXPECT_FALSE(remote::try_claim(page()));
  EXPECT_EQ(page_fold_remote(page()), page()->capacity);
  EXPECT_EQ(word(), remote::kOwned);
  EXPECT_EQ(page_fold_remote(page()), 0u);
  EXPECT_TRUE(page_is_valid(page()));
}

// For every number of pushes before the release, and every threshold: the push that reaches it claims, none before.
TEST_F(Remote, ExactlyTheThresholdPushClaims) {
  hand_all_out();
  uint32_t capacity = page()->capacity;
  for (uint32_t before = 0; before < capacity; before += 7) {
    for (uint32_t remaining = 1; remaining <= capacity - before; remaining += 5) {
      for (bool sparse : {false, true}) {
        uint32_t pushed = 0;
        for (; pushed < before; ++pushed) ASSERT_FALSE(remote::push(page(), bench_.block(pushed)));
        ASSERT_TRUE(release(remaining, sparse));
        ASSERT_TRUE(is_ownerless());
        ASSERT_EQ(remote::is_sparse(page()), sparse);
        ASSERT_EQ(remote::count_of(word()), before);
        for (uint32_t i = 1; i < remaining; ++i) ASSERT_FALSE(remote::push(page(), bench_.block(pushed++)));
        ASSERT_TRUE(remote::push(page(), bench_.block(pushed++))) << before << " pushed before, " << remaining;
        ASSERT_FALSE(is_ownerless());
        ASSERT_FALSE(remote::is_sparse(page()));
        ASSERT_FALSE(remote::try_claim(page()));
        ASSERT_EQ(page_fold_remote(page()), pushed);
        while (bench_.pop() != nullptr) {
        }
      }
    }
  }
}

TEST_F(Remote, AClaimKeepsTheListAndEndsTheCountdown) {
  hand_all_out();
  ASSERT_TRUE(release(5, true));
  ASSERT_FALSE(remote::push(page(), bench_.block(3)));
  ASSERT_TRUE(remote::try_claim(page()));
  EXPECT_FALSE(remote::try_claim(page()));
  EXPECT_FALSE(is_ownerless());
  EXPECT_FALSE(remote::is_sparse(page()));
  for (uint32_t i = 4; i < 20; ++i) EXPECT_FALSE(remote::push(page(), bench_.block(i))) << "no countdown any more";
  EXPECT_EQ(page_fold_remote(page()), 17u);
}

TEST_F(Remote, AWatchedPageTellsOfItsLastBlock) {
  hand_all_out();
  uint32_t i = 0;
  for (; i < 3; ++i) ASSERT_EQ(remote::push(page(), bench_.block(i)), remote::kPushed);
  remote::watch(page(), page()->countdown);
  for (; i + 1 < page()->capacity; ++i) {
    ASSERT_EQ(remote::push(page(), bench_.block(i)), remote::kPushed);
    ASSERT_FALSE(page_is_all_back(page()));
  }
  EXPECT_EQ(remote::push(page(), bench_.block(i)), remote::kLastBack);
  EXPECT_TRUE(page_is_all_back(page()));
  EXPECT_FALSE(is_ownerless());
}

TEST_F(Remote, AWatchedPageWhoseOwnerFreesBlocksIsAllBackUntold) {
  hand_all_out();
  remote::watch(page(), page()->countdown);
  bench_.push_local(bench_.block(0));
  for (uint32_t i = 1; i < page()->capacity; ++i) {
    ASSERT_FALSE(page_is_all_back(page()));
    ASSERT_EQ(remote::push(page(), bench_.block(i)), remote::kPushed);
  }
  EXPECT_TRUE(page_is_all_back(page()));
}

TEST_F(Remote, AReleaseFailsWhenSomethingWasPushedMeanwhile) {
  hand_all_out();
  uint64_t stale = word();
  ASSERT_FALSE(remote::push(page(), bench_.block(0)));
  EXPECT_FALSE(remote::try_release(page(), &stale, 1, false));
  EXPECT_EQ(stale, word()) << "it was read anew";
  EXPECT_FALSE(is_ownerless());
  EXPECT_TRUE(remote::try_release(page(), &stale, 1, false));
}

// Threads free all blocks of an ownerless page, another one claims and releases it in between. In each round exactly
// the last somebody is left holding the page when it is empty.
TEST_F(Remote, NoPageIsEverEmptyOwnerlessAndUnseen) {
#if defined(__SANITIZE_THREAD__)
  constexpr int kRounds = 300;
#else
  constexpr int kRounds = 3000;
#endif
  constexpr uint32_t kThreads = 3;
  hand_all_out();
  uint32_t capacity = page()->capacity;
  std::atomic<int> round_begun{0}, threads_done{0}, finished{0};
  // Whoever holds the page: releases it again while blocks live, else ends the round.
  auto look = [&] {
    for (;;) {
      uint64_t seen = page()->remote.load(std::memory_order_acquire);
      uint32_t live = page()->countdown - remote::count_of(seen);
      if (live == 0) {
        finished.fetch_add(1);
        return;
      }
      if (remote::try_release(page(), &seen, (live + 1) / 2, false)) return;
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 1; round <= kRounds; ++round) {
        while (round_begun.load() < round) std::this_thread::yield();
        for (uint32_t i = number; i < capacity; i += kThreads) {
          if (remote::push(page(), bench_.block(i))) look();
          if (i % 16 == number && remote::try_claim(page())) look();
        }
        threads_done.fetch_add(1);
      }
    });
  }
  for (int round = 1; round <= kRounds; ++round) {
    look();  // makes the full page ownerless
    round_begun.store(round);
    while (threads_done.load() < static_cast<int>(kThreads) * round) std::this_thread::yield();
    ASSERT_EQ(finished.load(), round);
    ASSERT_FALSE(is_ownerless());
    ASSERT_EQ(page_fold_remote(page()), capacity);
    ASSERT_TRUE(page_is_valid(page()));
    ASSERT_EQ(page()->countdown, 0u);
    while (bench_.pop() != nullptr) {
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ebb::test
