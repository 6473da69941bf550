// Statistics: exact for a process at rest, complete, and never out of the possible.
#include <ebb/ebb.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20;

ebb_stats_t stats_now() {
  ebb_stats_t stats;
  EXPECT_TRUE(ebb_stats_get(&stats, sizeof stats));
  return stats;
}

// Blocks of many classes and of their own spans.
std::vector<void*> allocate_mixture(int count) {
  std::vector<void*> blocks;
  blocks.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) blocks.push_back(ebb_malloc(static_cast<size_t>(i) * static_cast<size_t>(i) % 90000));
  return blocks;
}

TEST(StatsTest, LiveBlocksAndBytesAreExact) {
  ebb_stats_t before = stats_now();
  std::vector<void*> blocks = allocate_mixture(1000);
  size_t bytes = 0;
  for (void* p : blocks) bytes += ebb_usable_size(p);
  ebb_stats_t full = stats_now();
  EXPECT_EQ(full.live_blocks - before.live_blocks, blocks.size());
  EXPECT_EQ(full.live_bytes - before.live_bytes, bytes);
  for (size_t i = 0; i < blocks.size(); i += 2) {
    bytes -= ebb_usable_size(blocks[i]);
    ebb_free(blocks[i]);
  }
  ebb_stats_t half = stats_now();
  EXPECT_EQ(half.live_blocks - before.live_blocks, blocks.size() / 2);
  EXPECT_EQ(half.live_bytes - before.live_bytes, bytes);
  for (size_t i = 1; i < blocks.size(); i += 2) ebb_free(blocks[i]);
  ebb_stats_t after = stats_now();
  EXPECT_EQ(after.live_blocks, before.live_blocks);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST(StatsTest, WhatOtherThreadsFreeIsNotLive) {
  ebb_stats_t before = stats_now();
  std::vector<void*> blocks = allocate_mixture(1000);
  std::thread([&blocks] {
    for (void* p : blocks) ebb_free(p);
  }).join();
  EXPECT_EQ(stats_now().live_blocks, before.live_blocks);
  EXPECT_EQ(stats_now().live_bytes, before.live_bytes);
}

TEST(StatsTest, WhatEndedThreadsLeftIsLive) {
  ebb_stats_t before = stats_now();
  std::vector<void*> blocks;
  std::thread([&blocks] { blocks = allocate_mixture(1000); }).join();
  EXPECT_EQ(stats_now().live_blocks - before.live_blocks, blocks.size());
  for (void* p : blocks) ebb_free(p);
  EXPECT_EQ(stats_now().live_blocks, before.live_blocks);
}

TEST(StatsTest, LargeBlocksAreCounted) {
  ebb_collect(true);
  ebb_stats_t before = stats_now();
  void* p = ebb_malloc(10 * kMiB);
  ebb_stats_t with = stats_now();
  EXPECT_EQ(with.large_count, before.large_count + 1);
  EXPECT_EQ(with.live_bytes, before.live_bytes + 10 * kMiB);
  EXPECT_GE(with.resident_bytes, before.resident_bytes + 9 * kMiB);
  ebb_free(p);
  EXPECT_EQ(stats_now().large_count, before.large_count);
}

TEST(StatsTest, CollectingLeavesNothingDirty) {
  std::vector<void*> blocks = allocate_mixture(2000);
  for (void* p : blocks) ebb_free(p);
  void* large = ebb_malloc(20 * kMiB);
  memset(large, 1, 20 * kMiB);
  ebb_free(large);
  size_t resident = stats_now().resident_bytes;
  ebb_collect(true);
  ebb_stats_t after = stats_now();
  EXPECT_EQ(after.dirty_bytes, 0u);
  EXPECT_LT(after.resident_bytes, resident);
}

TEST(StatsTest, FiguresStandInTheirOrder) {
  std::vector<void*> blocks = allocate_mixture(500);
  ebb_stats_t stats = stats_now();
  EXPECT_GE(stats.thread_count, 1u);
  EXPECT_GT(stats.page_count, 0u);
  EXPECT_GT(stats.metadata_bytes, 0u);
  EXPECT_LT(stats.metadata_bytes, stats.resident_bytes);
  EXPECT_LE(stats.live_bytes, stats.committed_bytes);
  EXPECT_LE(stats.dirty_bytes, stats.resident_bytes);
  EXPECT_LE(stats.committed_bytes, stats.reserved_bytes);
  for (void* p : blocks) ebb_free(p);
}

// Figures that wrapped below zero would be near SIZE_MAX.
TEST(StatsTest, NoFigureIsNegativeWhileOthersAllocateAndFree) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&stop] {
      while (!stop.load(std::memory_order_relaxed)) {
        for (void* p : allocate_mixture(300)) ebb_free(p);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    ebb_stats_t stats = stats_now();
    for (size_t figure : {stats.live_bytes, stats.live_blocks, stats.resident_bytes, stats.dirty_bytes,
                          stats.metadata_bytes, stats.page_count, stats.large_count, stats.thread_count}) {
      ASSERT_LT(figure, size_t{1} << 40);
    }
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
}

TEST(StatsTest, ACallerOfAnotherVersionGetsWhatBothKnow) {
  unsigned char memory[sizeof(ebb_stats_t) + 64];
  memset(memory, 0xEE, sizeof memory);
  EXPECT_TRUE(ebb_stats_get(reinterpret_cast<ebb_stats_t*>(memory), offsetof(ebb_stats_t, resident_bytes)));
  EXPECT_EQ(memory[offsetof(ebb_stats_t, resident_bytes)], 0xEE) << "more was written than the caller has";
  EXPECT_TRUE(ebb_stats_get(reinterpret_cast<ebb_stats_t*>(memory), sizeof memory));
  EXPECT_EQ(memory[sizeof memory - 1], 0) << "what the library does not know is zero";
  EXPECT_FALSE(ebb_stats_get(reinterpret_cast<ebb_stats_t*>(memory), 0));
  EXPECT_FALSE(ebb_stats_get(nullptr, sizeof(ebb_stats_t)));
}

TEST(StatsJsonTest, IsCutAndCountedAsSnprintfDoes) {
  std::vector<char> whole(100000);
  size_t length = ebb_stats_json(whole.data(), whole.size());
  ASSERT_LT(length, whole.size());
  EXPECT_EQ(strlen(whole.data()), length);
  EXPECT_EQ(whole[0], '{');
  EXPECT_EQ(whole[length - 1], '}');
  EXPECT_EQ(ebb_stats_json(nullptr, 0), length);
  char cut[20];
  memset(cut, 'x', sizeof cut);
  EXPECT_EQ(ebb_stats_json(cut, 10), length);
  EXPECT_EQ(std::string(cut), std::string(whole.data(), 9));
  EXPECT_EQ(cut[10], 'x') << "written behind the capacity";
}

TEST(StatsPrintTest, HandsLinesOver) {
  std::vector<std::string> lines;
  lines.reserve(1000);
  auto keep = [](const char* line, void* arg) { static_cast<std::vector<std::string>*>(arg)->push_back(line); };
  ebb_stats_print(keep, &lines);
  ASSERT_GT(lines.size(), 10u);
  EXPECT_EQ(lines[0].rfind(std::string("ebb ") + ebb_version(), 0), 0u) << lines[0];
  for (const std::string& line : lines) EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(StatsTest, AskingAllocatesNothing) {
  std::vector<char> text(100000);
  ebb_stats_t before = stats_now();
  ebb_stats_json(text.data(), text.size());
  ebb_stats_print([](const char*, void*) {}, nullptr);
  ebb_stats_t after = stats_now();
  EXPECT_EQ(after.live_blocks, before.live_blocks);
  EXPECT_EQ(after.page_count, before.page_count);
  EXPECT_EQ(after.committed_bytes, before.committed_bytes);
}

}  // namespace
