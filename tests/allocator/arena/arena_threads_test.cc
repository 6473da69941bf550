// Threads that take, lengthen, shorten and give, with passes and forced purges among them. Every span's contents are
// checked before it is given; at the end nothing is lost.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "arena_range.h"

namespace ebb::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kRounds = 2000;
#else
constexpr int kRounds = 15000;
#endif

struct Held {
  Slice* span;
  uint32_t slices;
  uint32_t mark;
};

void mark_slices(const Held& held) {
  for (uint32_t i = 0; i < held.slices; ++i) memcpy(held.span->start + size_t{i} * kSliceBytes + 128, &held.mark, 4);
}

bool is_marked(const Held& held) {
  for (uint32_t i = 0; i < held.slices; ++i) {
    if (memcmp(held.span->start + size_t{i} * kSliceBytes + 128, &held.mark, 4) != 0) return false;
  }
  return true;
}

// Returns the number of spans whose contents were wrong.
int work(Arena& arena, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Held> spans;
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    bool zero = false;
    uint32_t slices = 1 + static_cast<uint32_t>(random() % 6);
    Slice* span = spans.size() < 60 ? arena.take({slices}, kSliceBytes << (random() % 3), &zero) : nullptr;
    if (span != nullptr) {
      spans.push_back({span, slices, seed << 20 | static_cast<uint32_t>(round)});
      Held empty{span, slices, 0};
      wrong += zero && !is_marked(empty);
      mark_slices(spans.back());
    }
    if (spans.empty() || random() % 3 == 0) continue;
    size_t which = random() % spans.size();
    Held& held = spans[which];
    wrong += !is_marked(held);
    if (random() % 5 == 0 && arena.extend(held.span, {held.slices + 1})) {
      ++held.slices;
      mark_slices(held);
    } else if (random() % 5 == 0 && held.slices > 1) {
      arena.give_tail(held.span, {--held.slices});
    } else if (span == nullptr || random() % 2 == 0) {
      arena.give(held.span);
      held = spans.back();
      spans.pop_back();
    }
  }
  for (const Held& held : spans) {
    wrong += !is_marked(held);
    arena.give(held.span);
  }
  return wrong;
}

TEST(ArenaThreads, ContentsSurvivePassesAndForcedPurges) {
  g_arm_threshold_slices.store(1);
  ArenaRange range(900);
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> workers;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    workers.emplace_back([&, seed] { wrong += work(range.arena(), seed); });
  }
  std::thread pass([&] {
    while (!done) {
      begin_generation();
      range.arena().purge_due();
    }
  });
  std::thread forced([&] {
    for (int i = 0; !done; ++i) {
      range.arena().purge_all();
      wrong += !range.arena().is_valid();
    }
  });
  for (std::thread& worker : workers) worker.join();
  done = true;
  pass.join();
  forced.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(range.arena().is_valid());
  range.arena().purge_all();
  Arena::Usage usage = range.arena().usage();
  EXPECT_EQ(usage.used_bytes, 0u);
  EXPECT_EQ(usage.dirty_bytes, 0u);
  EXPECT_EQ(os::resident_bytes(range.memory(range.low()), usage.reserved_bytes), 0u);
  g_arm_threshold_slices.store(UINT32_MAX);
}

}  // namespace
}  // namespace ebb::test
