// The memory of the slice table goes back where nothing but clean free memory is, and nowhere else.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "arena_range.h"
#include "base/bits.h"
#include "config/options.h"
#include "os/fault.h"
#include "test_point_script.h"

namespace ebb::test {
namespace {

constexpr size_t kPlain = kSliceBytes;

class ArenaTable : public testing::Test {
 protected:
  void SetUp() override { g_arm_threshold_slices.store(1); }
  void TearDown() override {
    os::g_fault_hook = nullptr;
    os::set_page_bytes_for_test(os_page_bytes_);
    g_arm_threshold_slices.store(UINT32_MAX);
  }

  void let_age() {
    for (int i = 0; i < kPurgeAge; ++i) begin_generation();
  }
  static std::vector<Slice*> take_all(ArenaRange* range, size_t count) {
    std::vector<Slice*> spans;
    for (size_t i = 0; i < count; ++i) {
      spans.push_back(range->arena().take({1}, kPlain, nullptr));
      spans.back()->remote.store(~uint64_t{i});  // as a page would
    }
    return spans;
  }
  size_t table_bytes(const ArenaRange& range) {
    os::set_page_bytes_for_test(os_page_bytes_);
    char* begin = reinterpret_cast<char*>(align_down(reinterpret_cast<uintptr_t>(range.slice(range.low())), os::page_bytes()));
    return os::resident_bytes(begin, static_cast<size_t>(reinterpret_cast<char*>(range.slice(range.high())) - begin));
  }

  const size_t os_page_bytes_ = os::page_bytes();
};

TEST_F(ArenaTable, AForcedPurgeReturnsWhatIsInsideFreeMemory) {
  ArenaRange range(3000);
  std::vector<Slice*> spans = take_all(&range, 2500);
  EXPECT_GE(table_bytes(range), 2500 * kPageStride);
  for (size_t i = 0; i < spans.size(); ++i) {
    if (i != 1200) range.arena().give(spans[i]);
  }
  range.arena().purge_all();
  // The ends of the free spans on both sides of the one in use.
  EXPECT_LE(table_bytes(range), 5 * os::page_bytes());
  EXPECT_EQ(spans[1200]->remote.load(), ~uint64_t{1200});
  EXPECT_TRUE(range.arena().is_valid());
  range.arena().give(spans[1200]);
  range.arena().purge_all();
  EXPECT_LE(table_bytes(range), 3 * os::page_bytes());
  EXPECT_EQ(take_all(&range, 2500).size(), 2500u);
  EXPECT_TRUE(range.arena().is_valid());
}

// The table of what was one long block was never touched, and is not by looking at it.
TEST_F(ArenaTable, ALookAtALongSpanTouchesNothing) {
  constexpr uint32_t kSlices = 200000;
  ArenaRange range(kSlices + 500);
  range.arena().give(range.arena().take({kSlices}, kPlain, nullptr));
  range.arena().purge_all();
  EXPECT_LE(table_bytes(range), 6 * os::page_bytes());
  EXPECT_TRUE(range.arena().is_valid());
}

TEST_F(ArenaTable, AFreeSpanLongerThanAStepIsReturnedWhole) {
  constexpr size_t kSpans = 40000;
  ArenaRange range(kSpans + 500);
  for (Slice* span : take_all(&range, kSpans)) range.arena().give(span);
  range.arena().purge_all();
  constexpr size_t kKept = 4;  // OS pages at its ends
  EXPECT_LE(table_bytes(range), kKept * os::page_bytes());
  for (Slice* span : take_all(&range, kSpans)) range.arena().give(span);
  range.arena().purge_all();
  EXPECT_LE(table_bytes(range), kKept * os::page_bytes());
  EXPECT_TRUE(range.arena().is_valid());
}

TEST_F(ArenaTable, ThePassAfterWhichNothingIsDirtyReturnsIt) {
  ArenaRange range(3000);
  std::vector<Slice*> spans = take_all(&range, 2500);
  for (size_t i = 0; i < 2000; ++i) range.arena().give(spans[i]);
  let_age();
  range.arena().give(spans[2499]);
  EXPECT_TRUE(range.arena().purge_due()) << "the last one is too young";
  EXPECT_GE(table_bytes(range), 2000 * kPageStride) << "memory comes and goes still";
  let_age();
  EXPECT_FALSE(range.arena().purge_due());
  EXPECT_LE(table_bytes(range), 500 * kPageStride + 5 * os::page_bytes());
}

TEST_F(ArenaTable, WhatIsLeftOfASpanIsReturned) {
  ArenaRange range(3000);
  for (Slice* span : take_all(&range, 2500)) range.arena().give(span);
  // Between its purge and the look at its table, a part of the span is taken.
  Slice* taken = nullptr;
  AtPoint between("purge.drained", [&] {
    if (taken == nullptr && range.arena().usage().dirty_bytes == 0) taken = range.arena().take({100}, kPlain, nullptr);
  });
  range.arena().purge_all();
  ASSERT_NE(taken, nullptr);
  EXPECT_LE(table_bytes(range), 100 * kPageStride + 4 * os::page_bytes());
}

// While the OS call runs the span is nobody's: not found, not joined, and not lost.
TEST_F(ArenaTable, NobodyGetsASpanWhoseTableGoesBack) {
  ArenaRange range(600);
  std::vector<Slice*> spans = take_all(&range, 600);
  EXPECT_EQ(range.arena().take({1}, kPlain, nullptr), nullptr);
  for (size_t i = 100; i < 500; ++i) range.arena().give(spans[i]);
  int looks = 0;
  AtPoint during("table.before_os", [&] {
    ++looks;
    EXPECT_EQ(range.arena().take({1}, kPlain, nullptr), nullptr);
    if (looks == 1) range.arena().give(spans[99]), range.arena().give(spans[500]);
  });
  range.arena().purge_all();
  EXPECT_GE(looks, 1);
  EXPECT_TRUE(range.arena().is_valid());
  EXPECT_NE(range.arena().take({402}, kPlain, nullptr), nullptr) << "joined with what was freed beside it";
}

TEST_F(ArenaTable, OsPagesOf64KiBAreReturnedWhole) {
  os::set_page_bytes_for_test(64 * KiB);
  ArenaRange range(4000, 37);
  std::vector<Slice*> spans = take_all(&range, 3500);
  for (size_t i = 700; i < 2800; ++i) range.arena().give(spans[i]);
  size_t before = table_bytes(range);
  os::set_page_bytes_for_test(64 * KiB);
  range.arena().purge_all();
  EXPECT_LE(table_bytes(range) + 3 * 64 * KiB, before);
  for (size_t i = 0; i < spans.size(); ++i) {
    bool is_used = i < 700 || i >= 2800;
    ASSERT_TRUE(!is_used || spans[i]->remote.load() == ~uint64_t{i}) << i;
  }
  EXPECT_TRUE(range.arena().is_valid());
}

TEST_F(ArenaTable, ARefusalIsNotTriedInALoop) {
  ArenaRange range(3000);
  for (Slice* span : take_all(&range, 2500)) range.arena().give(span);
  static char* table_end;
  static int refusals;
  table_end = reinterpret_cast<char*>(range.slice(range.high()));
  refusals = 0;
  os::g_fault_hook = [](const char* call, const void* start, size_t) {
    return strcmp(call, "purge") == 0 && static_cast<const char*>(start) < table_end && ++refusals != 0;
  };
  range.arena().purge_all();
  EXPECT_EQ(refusals, 1);
  EXPECT_GE(table_bytes(range), 2500 * kPageStride);
  range.arena().purge_all();
  EXPECT_EQ(refusals, 1) << "nothing was purged since";
  EXPECT_TRUE(range.arena().is_valid());
}

TEST_F(ArenaTable, WhereHugePagesStayWholeOnlyAForcedPurgeTouchesIt) {
  const int64_t thp = option(Option::k_thp);
  ASSERT_TRUE(option_set(static_cast<size_t>(Option::k_thp), word::thp_full));
  ArenaRange range(3000);
  for (Slice* span : take_all(&range, 2500)) range.arena().give(span);
  let_age();
  range.arena().purge_due();
  EXPECT_GE(table_bytes(range), 2500 * kPageStride);
  range.arena().purge_all();
  EXPECT_LE(table_bytes(range), 3 * os::page_bytes());
  ASSERT_TRUE(option_set(static_cast<size_t>(Option::k_thp), thp));
}

}  // namespace
}  // namespace ebb::test
