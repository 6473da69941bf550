// A scavenger that is the test itself: no thread is started, the clock stands until the test moves it, and passes
// happen when the test makes them. The first fixture of a program sets it up; it stays.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "arena/arena_list.h"
#include "base/units.h"
#include "ebb/ebb.h"
#include "os/fault.h"
#include "os/os.h"
#include "scavenger/scavenger.h"

namespace ebb::test {

class DrivenScavenger : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static bool is_standing_in = false;
    if (is_standing_in) return;
    is_standing_in = true;
    ebb_free(ebb_malloc(1));  // the allocator has started
    os::set_clock_for_test([] { return now_.load(); });
    scavenger_stand_in_for_test();
    inner_hook_ = g_arena_armed_hook;
    g_arena_armed_hook = [] {
      ++armings_;
      inner_hook_();
    };
  }
  void SetUp() override {
    ebb_collect(true);
    settle();
    armings_ = 0;
    purges_ = 0;
    refuses_purges_ = false;
    os::g_fault_hook = [](const char* call, const void*, size_t) {
      if (strcmp(call, "purge") != 0) return false;
      ++purges_;
      return refuses_purges_.load();
    };
  }
  void TearDown() override {
    os::g_fault_hook = nullptr;
    refuses_purges_ = false;
    ebb_collect(true);
    for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) EXPECT_TRUE(arena->is_valid());
  }

  // The scavenger's work at this moment; returns whether something remains for later.
  static bool pass() { return scavenger_pass(now_); }
  // A quarter of the purge delay goes by.
  static void tick() {
    now_ += 25'000'000;
    begin_generation();
  }
  static void let_time_pass_ms(uint64_t ms) {
    for (uint64_t i = 0; i < ms; i += 25) tick();
  }
  // What the thread would do until it has nothing left; returns the number of passes.
  static int settle() {
    int passes = 1;
    for (; pass(); ++passes) {
      tick();
      if (passes == 1000) {
        ADD_FAILURE() << "the scavenger never comes to rest";
        break;
      }
    }
    return passes;
  }

  static size_t dirty_bytes() {
    size_t bytes = 0;
    for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) bytes += arena->usage().dirty_bytes;
    return bytes;
  }
  static void* make_touched(size_t bytes) {
    void* p = ebb_malloc(bytes);
    memset(p, 0x77, bytes);
    return p;
  }

  // Pages of a thread that has ended, in which one block of `one_in` is live; returns these, filled with 0x33.
  static std::vector<void*> leave_sparse_pages(size_t size, int pages, size_t one_in = 64) {
    std::vector<void*> kept;
    std::thread([&] {
      std::vector<void*> all;
      for (size_t i = 0; i < static_cast<size_t>(pages) * (kSliceBytes / size); ++i) {
        all.push_back(memset(ebb_malloc(size), 0x33, size));
      }
      for (size_t i = 0; i < all.size(); ++i) i % one_in == 0 ? kept.push_back(all[i]) : ebb_free(all[i]);
    }).join();
    return kept;
  }

  static inline std::atomic<uint64_t> now_{1'000'000'000};
  static inline std::atomic<int> armings_{0}, purges_{0};
  static inline std::atomic<bool> refuses_purges_{false};

 private:
  static inline void (*inner_hook_)() = nullptr;
};

}  // namespace ebb::test
