// The workloads' own memory: tables, the queue between threads, teams, and counting live pages.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "common/queue.h"
#include "common/resident.h"
#include "common/settle.h"
#include "common/table.h"
#include "common/threads.h"

namespace tidemark {
namespace {

TEST(Table, BeginsAsZeroAndIsAccountedFor) {
  const std::size_t before = driver_bytes.load();
  {
    Table<std::uint64_t> table(1000);
    for (const std::uint64_t item : table) EXPECT_EQ(item, 0u);
    EXPECT_EQ(table.size(), 1000u);
    EXPECT_EQ(driver_bytes.load(), before + 8192);
    table[999] = 5;
    EXPECT_EQ(table.part(998, 2)[1], 5u);
  }
  EXPECT_EQ(driver_bytes.load(), before);
}

TEST(Queue, IsFirstInFirstOutAndBounded) {
  Queue<int> queue(4);
  int value = 0;
  EXPECT_FALSE(queue.try_pop(value));
  for (int lap = 0; lap < 3; ++lap) {
    for (int item = 0; item < 4; ++item) EXPECT_TRUE(queue.try_push(item));
    EXPECT_FALSE(queue.try_push(4));
    for (int item = 0; item < 4; ++item) {
      ASSERT_TRUE(queue.try_pop(value));
      EXPECT_EQ(value, item);
    }
    EXPECT_FALSE(queue.try_pop(value));
  }
}

TEST(Queue, LosesAndDoublesNothingBetweenThreads) {
  constexpr std::size_t kThreads = 4;  // half of them push
  constexpr std::size_t kItems = 20'000;
  Queue<std::size_t> queue(16);
  std::vector<std::atomic<unsigned>> seen(kItems * kThreads / 2);
  std::atomic<std::size_t> popped{0};
  auto body = [&](std::size_t index) {
    if (index < kThreads / 2) {
      for (std::size_t item = 0; item < kItems; ++item) {
        while (!queue.try_push(index * kItems + item)) sched_yield();
      }
      return;
    }
    std::size_t value;
    while (popped.load() != seen.size()) {
      if (queue.try_pop(value)) {
        ++seen[value];
        ++popped;
      } else {
        sched_yield();
      }
    }
  };
  Team team;
  team.start(kThreads, body);
  team.join();
  for (const auto& count : seen) ASSERT_EQ(count.load(), 1u);
}

TEST(Team, RunsEachIndexOnceAndCanBeStartedAgain) {
  std::atomic<unsigned> sum{0};
  auto body = [&sum](std::size_t index) { sum += 1u << index; };
  Team team;
  for (int round = 1; round <= 3; ++round) {
    team.start(5, body);
    team.join();
    EXPECT_EQ(sum.load(), 31u * static_cast<unsigned>(round));
  }
}

TEST(FloorBytes, CountsEachPageOnce) {
  alignas(4096) static char memory[16 * 4096];
  const std::size_t page = page_bytes();
  const std::vector<Extent> live = {
      {memory, 16},                // first page
      {memory + 64, 16},           // the same
      {memory + page - 8, 16},     // over the border to the second
      {memory + 3 * page, page},   // exactly one
      {memory + 2 * page - 1, 1},  // last byte of the second
  };
  EXPECT_EQ(floor_bytes(live), 3 * page);
  EXPECT_EQ(floor_bytes(std::span<const Extent>{}), 0u);
  const std::vector<Block> blocks = {{memory, 16, 0}, {nullptr, 1 << 20, 0}, {memory + 2 * page, 16, 0}};
  EXPECT_EQ(floor_bytes(blocks), 2 * page);
}

TEST(ResidentBytes, GrowsByWhatIsTouched) {
  const std::uint64_t before = resident_bytes();
  Table<char> table(8 << 20);
  const std::uint64_t grown = resident_bytes() - before;
  EXPECT_GE(grown, 8u << 20);
  EXPECT_LT(grown, 9u << 20);
}

TEST(SteadyWatch, WantsAsManyLooksInARowAsItSays) {
  SteadyWatch watch;
  EXPECT_FALSE(watch.see(1 << 20)) << "one look agrees with nothing";
  for (int look = 1; look < SteadyWatch::kLooks; ++look) EXPECT_FALSE(watch.see(1 << 20)) << look;
  EXPECT_TRUE(watch.see(1 << 20));
}

TEST(SteadyWatch, BeginsAnewWhenTheFigureMoves) {
  SteadyWatch watch;
  for (int look = 0; look < SteadyWatch::kLooks; ++look) EXPECT_FALSE(watch.see(8 << 20));
  EXPECT_FALSE(watch.see(8 * 1024 * 1024 - SteadyWatch::kBytes)) << "a purge's step";
  for (int look = 1; look < SteadyWatch::kLooks; ++look) EXPECT_FALSE(watch.see(7 << 20 | look));
}

TEST(SteadyWatch, DoesNotMindAPageOrTwo) {
  SteadyWatch watch;
  bool steady = false;
  for (int look = 0; look <= SteadyWatch::kLooks; ++look) steady = watch.see((8u << 20) + (look % 2) * 8192u);
  EXPECT_TRUE(steady);
}

}  // namespace
}  // namespace tidemark
