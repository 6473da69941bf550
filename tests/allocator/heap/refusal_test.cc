// The OS refuses: every call in turn, for a while, then memory is there again. NULL and ENOMEM, never a crash, and
// nothing that was allocated suffers.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "books.h"
#include "os/fault.h"

namespace ebb::test {
namespace {

std::atomic<int64_t> g_calls_left{INT64_MAX};  // until the refusals begin

bool refuse_after_countdown(const char* call, const void*, size_t) {
  bool matters = strcmp(call, "commit") == 0 || strcmp(call, "reserve") == 0;
  return matters && g_calls_left.fetch_sub(1) <= 0;
}

class Refusal : public testing::Test {
 protected:
  void SetUp() override {
    free_later_.reserve(400000);
    ebb_free(ebb_malloc(1));
    g_calls_left = INT64_MAX;
    os::g_fault_hook = refuse_after_countdown;
  }
  void TearDown() override {
    g_calls_left = INT64_MAX;
    os::g_fault_hook = nullptr;
  }
  std::vector<char*> free_later_;
};

TEST_F(Refusal, TheNthCallForEachN) {
  for (int nth = 0; nth < 12; ++nth) {
    g_calls_left = nth;
    bool was_refused = false;
    for (int i = 0; i < 3000 && !was_refused; ++i) {
      errno = 0;
      char* p = static_cast<char*>(ebb_malloc(1 << 20));
      was_refused = p == nullptr;
      EXPECT_EQ(errno, was_refused ? ENOMEM : 0);
      if (!was_refused) {
        *p = static_cast<char>(nth);
        free_later_.push_back(p);
      }
    }
    ASSERT_TRUE(was_refused) << "3 GB without a call";
    g_calls_left = INT64_MAX;
    char* p = static_cast<char*>(ebb_malloc(200000));
    EXPECT_NE(p, nullptr) << "memory is there again";
    ebb_free(p);
    ASSERT_TRUE(arenas_are_valid());
  }
  for (char* p : free_later_) ebb_free(p);
}

TEST_F(Refusal, SmallBlocksEndInNullToo) {
  g_calls_left = 0;
  // What is free is taken by large blocks that nobody touches, so that little is left for the small ones.
  std::vector<void*> large;
  while (void* p = ebb_malloc(256 << 10)) large.push_back(p);
  // But not nothing: what one of them held.
  ASSERT_FALSE(large.empty());
  ebb_free(large.back());
  large.pop_back();
  errno = 0;
  while (char* p = static_cast<char*>(ebb_malloc(4000))) {
    memset(p, 0x11, 4000);
    free_later_.push_back(p);
    ASSERT_LT(free_later_.size(), 300000u) << "1.2 GB without a call";
  }
  ASSERT_FALSE(free_later_.empty());
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ebb_calloc(1, 4000), nullptr);
  EXPECT_EQ(ebb_aligned_alloc(4096, 4096), nullptr);
  // Resizing fails without harm, shrinking works.
  EXPECT_EQ(ebb_realloc(free_later_.back(), 60000), nullptr);
  EXPECT_EQ(free_later_.back()[3999], 0x11);
  for (char* p : free_later_) {
    ASSERT_TRUE(p[0] == 0x11 && p[3999] == 0x11);
    ebb_free(p);
  }
  for (void* p : large) ebb_free(p);
  EXPECT_NE(free_later_.emplace_back(static_cast<char*>(ebb_malloc(4000))), nullptr) << "what was freed serves again";
  ebb_free(free_later_.back());
}

TEST_F(Refusal, AThreadThatGetsNoHeapStillEnds) {
  size_t before = spans_after_collect();
  g_calls_left = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      void* blocks[64];
      for (void*& p : blocks) p = ebb_malloc(100);
      for (void* p : blocks) ebb_free(p);
    });
  }
  for (std::thread& thread : threads) thread.join();
  g_calls_left = INT64_MAX;
  EXPECT_EQ(spans_after_collect(), before);
}

}  // namespace
}  // namespace ebb::test
