// The purge protocol of arena/purge.cc, one promise a test.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "arena_range.h"
#include "base/bits.h"
#include "config/options.h"
#include "os/fault.h"
#include "test_point_script.h"

namespace ebb::test {
namespace {

constexpr size_t kPlain = kSliceBytes;

class ArenaPurge : public testing::Test {
 protected:
  void SetUp() override {
    g_arm_threshold_slices.store(1);
    g_purge_age.store(kPurgeAge);
    armings_ = 0;
    purges_ = 0;
    is_refusing_ = false;
    g_arena_armed_hook = [] { ++armings_; };
    os::g_fault_hook = [](const char* call, const void*, size_t) {
      if (strcmp(call, "purge") != 0) return false;
      ++purges_;
      return is_refusing_;
    };
  }
  void TearDown() override {
    os::g_fault_hook = nullptr;
    g_arena_armed_hook = nullptr;
    g_arm_threshold_slices.store(UINT32_MAX);
    g_purge_age.store(kPurgeAge);
  }

  // A span whose memory is resident.
  Slice* take_touched(uint32_t slices) {
    Slice* span = arena().take({slices}, kPlain, nullptr);
    memset(span->start, 0x77, size_t{slices} << kSliceShift);
    return span;
  }
  void let_age() {
    for (int i = 0; i < kPurgeAge; ++i) begin_generation();
  }
  Arena& arena() { return range_.arena(); }
  size_t dirty_slices() { return arena().usage().dirty_bytes >> kSliceShift; }

  ArenaRange range_{2000};
  static inline int armings_, purges_;
  static inline bool is_refusing_;
};

TEST_F(ArenaPurge, WhatIsFreeGoesBackWhenItIsOldEnoughAndNotBefore) {
  Slice* span = take_touched(4);
  char* memory = span->start;
  arena().give(span);
  EXPECT_EQ(armings_, 1);
  for (int age = 0; age < kPurgeAge; ++age) {
    EXPECT_TRUE(arena().purge_due()) << "too young, so the arena stays armed";
    EXPECT_EQ(dirty_slices(), 4u);
    begin_generation();
  }
  EXPECT_GT(os::resident_bytes(memory, 4 * kSliceBytes), 0u);
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(dirty_slices(), 0u);
  EXPECT_EQ(os::resident_bytes(memory, 4 * kSliceBytes), 0u);
}

TEST_F(ArenaPurge, GenerationsGoAroundWithoutLosingAnything) {
  for (int generation = 0; generation < 600; ++generation) {
    arena().give(take_touched(1));
    begin_generation();
    arena().purge_due();
    // The span is taken again each time, so its stamp is new: nothing is ever due, nothing piles up.
    ASSERT_EQ(dirty_slices(), 1u) << generation;
  }
  let_age();
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(dirty_slices(), 0u);
}

TEST_F(ArenaPurge, ArmsOnceForManyFreesAndOnlyAboveTheThreshold) {
  g_arm_threshold_slices.store(8);
  std::vector<Slice*> spans;
  for (int i = 0; i < 20; ++i) spans.push_back(take_touched(1));
  for (int i = 0; i < 7; ++i) arena().give(spans[i]);
  EXPECT_EQ(armings_, 0);
  for (int i = 7; i < 20; ++i) arena().give(spans[i]);
  EXPECT_EQ(armings_, 1);
}

// A pass disarms before it reads: what is freed behind it arms again, however the threads interleave.
TEST_F(ArenaPurge, AFreeBehindARunningPassIsNotStranded) {
  Slice* late = take_touched(3);
  arena().give(take_touched(2));
  let_age();
  bool was_given = false;
  AtPoint behind("purge.after_os", [&] {
    if (!was_given) arena().give(late);
    was_given = true;
  });
  EXPECT_TRUE(arena().purge_due()) << "the late span must leave the arena armed";
  EXPECT_TRUE(was_given);
  EXPECT_EQ(dirty_slices(), 3u);
  let_age();
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(dirty_slices(), 0u);
}

TEST_F(ArenaPurge, AFreeBetweenDisarmingAndReadingArms) {
  Slice* late = take_touched(3);
  AtPoint disarmed("purge.disarmed", [&] {
    if (late != nullptr) arena().give(late);
    late = nullptr;
  });
  EXPECT_TRUE(arena().purge_due());
  EXPECT_EQ(armings_, 1) << "the scavenger was told";
  EXPECT_EQ(dirty_slices(), 3u);
}

// While the OS call runs the run is nobody's: not found, not joined.
TEST_F(ArenaPurge, MemoryIsNotHandedOutWhileItGoesBack) {
  std::vector<Slice*> all;
  while (Slice* span = arena().take({8}, kPlain, nullptr)) all.push_back(span);
  memset(all[10]->start, 1, 8 * kSliceBytes);
  arena().give(all[10]);
  let_age();
  bool was_taken = true;
  AtPoint during("purge.before_os", [&] { was_taken = arena().take({8}, kPlain, nullptr) != nullptr; });
  EXPECT_FALSE(arena().purge_due());
  EXPECT_FALSE(was_taken);
  bool zero = false;
  EXPECT_NE(arena().take({8}, kPlain, &zero), nullptr);
  EXPECT_TRUE(zero);
}

TEST_F(ArenaPurge, ForcedPurgeTakesEverythingThatWasFree) {
  std::vector<Slice*> spans;
  for (int i = 0; i < 40; ++i) spans.push_back(take_touched(10));
  for (size_t i = 0; i < spans.size(); i += 2) arena().give(spans[i]);
  arena().purge_all();
  EXPECT_EQ(dirty_slices(), 0u);
  for (size_t i = 0; i < spans.size(); i += 2) {
    EXPECT_EQ(os::resident_bytes(spans[i]->start, 10 * kSliceBytes), 0u);
  }
  for (size_t i = 1; i < spans.size(); i += 2) {
    EXPECT_EQ(os::resident_bytes(spans[i]->start, 10 * kSliceBytes), 10 * kSliceBytes);
  }
}

// A pass of another thread is held in the middle of its step: the forced purge waits for that step, no more, and
// does the rest itself.
TEST_F(ArenaPurge, ForcedPurgeTakesAPassInProgressOver) {
  std::vector<Slice*> spans;
  for (int i = 0; i < 12; ++i) spans.push_back(take_touched(100));
  for (size_t i = 0; i < spans.size(); i += 2) arena().give(spans[i]);
  let_age();
  Event in_step, go_on;
  std::atomic<bool> held{false};
  AtPoint hold("purge.before_os", [&] {
    if (held.exchange(true)) return;
    in_step.set();
    go_on.wait("the forced purge to begin");
  });
  std::thread pass([&] { arena().purge_due(); });
  in_step.wait("the pass to be in a step");
  std::thread release([&] { go_on.set(); });
  arena().purge_all();
  EXPECT_EQ(dirty_slices(), 0u) << "all that was free at the call is back, whoever did it";
  release.join();
  pass.join();
  EXPECT_TRUE(arena().is_valid());
}

TEST_F(ArenaPurge, WhatTheOsRefusesIsNotBelievedToBeZeroAndLeavesTheArenaAtRest) {
  arena().give(take_touched(4));
  let_age();
  is_refusing_ = true;
  armings_ = 0;
  EXPECT_FALSE(arena().purge_due()) << "time alone changes nothing";
  EXPECT_EQ(armings_, 0);
  EXPECT_EQ(purges_, 1);
  EXPECT_EQ(dirty_slices(), 4u);
  arena().purge_all();
  EXPECT_EQ(purges_, 2) << "a forced purge tries once, and ends";
  bool zero = true;
  Slice* span = arena().take({4}, kPlain, &zero);
  EXPECT_FALSE(zero);
  is_refusing_ = false;
  arena().give(span);
  EXPECT_EQ(armings_, 1) << "used and freed again, it is as any other";
  let_age();
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(dirty_slices(), 0u);
}

// Passes run while other memory is freed; a process whose memory is locked must not pay for each of them.
TEST_F(ArenaPurge, WhatTheOsRefusesIsTriedAgainByPassesAtDoublingDistances) {
  arena().give(take_touched(4));
  let_age();
  is_refusing_ = true;
  std::vector<int> tried_at;
  for (int pass = 0; pass <= 124; ++pass) {
    int before = purges_;
    let_age();
    arena().purge_due();
    if (purges_ != before) tried_at.push_back(pass);
  }
  EXPECT_EQ(tried_at, (std::vector<int>{0, 4, 12, 28, 60, 124}));
  is_refusing_ = false;
  for (int pass = 0; pass < 128; ++pass) arena().purge_due();
  EXPECT_EQ(dirty_slices(), 0u) << "given back when the OS takes it again";
}

TEST_F(ArenaPurge, ANeighbourOfWhatTheOsRefusedGoesBack) {
  Slice* refused = take_touched(4);
  Slice* neighbour = take_touched(3);
  take_touched(1);
  arena().give(refused);
  let_age();
  is_refusing_ = true;
  arena().purge_due();
  is_refusing_ = false;
  arena().give(neighbour);
  EXPECT_EQ(armings_, 2);
  EXPECT_TRUE(arena().purge_due());
  let_age();
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(dirty_slices(), 4u);
  EXPECT_TRUE(arena().is_valid());
}

// Without any delay what was refused joins a span that the pass has still to look at.
TEST_F(ArenaPurge, APassEndsThoughTheOsRefusesAndThereIsNoDelay) {
  g_purge_age.store(0);
  Slice* span = take_touched(3 * kPurgeStep.value);
  arena().give(span);
  is_refusing_ = true;
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(purges_, 3) << "each step of the span once";
  is_refusing_ = false;
  arena().purge_all();
  EXPECT_EQ(purges_, 7) << "each once more, and their entries in the table";
  EXPECT_EQ(dirty_slices(), 0u);
}

class ArenaHugePages : public ArenaPurge {
 protected:
  static constexpr uint32_t kHuge = 2 * MiB >> kSliceShift;
  void SetUp() override {
    ArenaPurge::SetUp();
    option_set(static_cast<size_t>(Option::k_thp), 2);
    os::g_fault_hook = [](const char* call, const void* start, size_t bytes) {
      if (strcmp(call, "purge") != 0) return false;
      ++purges_;
      is_whole_ = is_whole_ && reinterpret_cast<uintptr_t>(start) % (2 * MiB) == 0 && bytes % (2 * MiB) == 0;
      return is_refusing_;
    };
    is_whole_ = true;
  }
  void TearDown() override {
    option_set(static_cast<size_t>(Option::k_thp), 0);
    ArenaPurge::TearDown();
  }
  static inline bool is_whole_;
};

TEST_F(ArenaHugePages, GoBackWhole) {
  Slice* span = take_touched(5 * kHuge);
  size_t skew = reinterpret_cast<uintptr_t>(span->start) % (2 * MiB) == 0 ? 0 : 1;
  arena().give(span);
  let_age();
  EXPECT_FALSE(arena().purge_due()) << "parts of huge pages are nothing to wait for";
  EXPECT_TRUE(is_whole_);
  EXPECT_EQ(dirty_slices(), skew * kHuge);
  arena().purge_all();
  EXPECT_EQ(dirty_slices(), 0u) << "a forced purge takes all that is free";
  EXPECT_TRUE(arena().is_valid());
}

TEST_F(ArenaHugePages, APartOfOneStaysUntilTheRestIsFree) {
  Slice* rest = arena().take({kHuge}, 2 * MiB, nullptr);
  take_touched(1);
  memset(rest->start, 1, 2 * MiB);
  arena().give_tail(rest, {kHuge / 2});
  let_age();
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(purges_, 0);
  armings_ = 0;
  arena().give(rest);
  EXPECT_EQ(armings_, 1);
  EXPECT_TRUE(arena().purge_due()) << "the rest is not due yet";
  EXPECT_EQ(purges_, 0);
  let_age();
  EXPECT_FALSE(arena().purge_due());
  EXPECT_TRUE(is_whole_);
  EXPECT_EQ(purges_, 1);
  EXPECT_EQ(dirty_slices(), 0u);
}

TEST_F(ArenaHugePages, RefusedOnesLeaveTheArenaAtRest) {
  Slice* span = arena().take({2 * kHuge}, 2 * MiB, nullptr);
  arena().give(span);
  let_age();
  is_refusing_ = true;
  EXPECT_FALSE(arena().purge_due());
  EXPECT_EQ(purges_, 1);
  EXPECT_EQ(dirty_slices(), 2 * kHuge);
  is_refusing_ = false;
  for (uint32_t i = 0; i < kPurgeAge; ++i) arena().purge_due();
  EXPECT_EQ(purges_, 2);
  EXPECT_EQ(dirty_slices(), 0u);
}

// Spans of equal length, every other one free and dirty.
class ArenaRoom : public ArenaPurge {
 protected:
  static constexpr uint32_t kPieces = 20, kPiece = 120;
  void SetUp() override {
    ArenaPurge::SetUp();
    std::vector<Slice*> spans;
    for (uint32_t i = 0; i < 2 * kPieces; ++i) spans.push_back(take(kPiece));
    for (uint32_t i = 0; i < 2 * kPieces; i += 2) big_.arena().give(spans[i]);
  }
  Slice* take(uint32_t slices) { return big_.arena().take({slices}, kPlain, nullptr); }
  uint32_t dirty() { return static_cast<uint32_t>(big_.arena().usage().dirty_bytes >> kSliceShift); }

  ArenaRange big_{16000};
};

TEST_F(ArenaRoom, AsMuchGoesBackAsALargeRequestTakesThatNoPieceCanServe) {
  constexpr uint32_t kLarge = 2100;
  static_assert(kLarge >= kRoomFrom.value && kLarge < kPieces * kPiece);
  ASSERT_NE(take(kLarge), nullptr);
  EXPECT_LE(dirty(), kPieces * kPiece - kLarge);
  EXPECT_GT(dirty(), kPieces * kPiece - kLarge - kPurgeStep.value) << "to the step";
  ASSERT_NE(take(kLarge), nullptr);
  EXPECT_EQ(dirty(), 0u) << "or all there is";
  EXPECT_TRUE(big_.arena().is_valid());
}

TEST_F(ArenaRoom, SmallerRequestsAndThoseThatFindWarmMemoryPurgeNothing) {
  ASSERT_NE(take(kRoomFrom.value - 1), nullptr);
  EXPECT_EQ(purges_, 0);
  Slice* span = take(kRoomFrom.value);
  purges_ = 0;
  big_.arena().give(span);
  EXPECT_EQ(take(kRoomFrom.value), span);
  EXPECT_EQ(purges_, 0);
}

TEST_F(ArenaRoom, ARefusalEndsIt) {
  is_refusing_ = true;
  ASSERT_NE(take(3000), nullptr);
  EXPECT_EQ(purges_, static_cast<int>(kPieces * div_up(kPiece, kPurgeStep.value)));
  EXPECT_EQ(dirty(), kPieces * kPiece);
  EXPECT_TRUE(big_.arena().is_valid());
}

TEST_F(ArenaPurge, PinnedMemoryIsReusedButNeverPurged) {
  ArenaRange pinned(64, 0, Begins::kUsedBefore, true);
  Slice* span = pinned.arena().take({3}, kPlain, nullptr);
  pinned.arena().give(span);
  let_age();
  pinned.arena().purge_due();
  pinned.arena().purge_all();
  EXPECT_EQ(purges_, 0);
  EXPECT_EQ(armings_, 0);
  EXPECT_TRUE(pinned.arena().is_valid());
}

TEST_F(ArenaPurge, AStepGivesBackABoundedAmount) {
  static size_t most;
  most = 0;
  os::g_fault_hook = [](const char* call, const void*, size_t bytes) {
    if (strcmp(call, "purge") == 0 && bytes > most) most = bytes;
    return false;
  };
  arena().give(take_touched(500));
  arena().purge_all();
  EXPECT_EQ(most, kPurgeStep.bytes());
  EXPECT_EQ(dirty_slices(), 0u);
}

TEST_F(ArenaPurge, GivenCleanIsZeroWithoutAPurge) {
  Slice* span = take_touched(2);
  os::renew(span->start, 2 * kSliceBytes);
  arena().give(span, true);
  EXPECT_EQ(dirty_slices(), 0u);
  EXPECT_EQ(armings_, 0);
  bool zero = false;
  EXPECT_EQ(arena().take({2}, kPlain, &zero), span);
  EXPECT_TRUE(zero);
}

}  // namespace
}  // namespace ebb::test
