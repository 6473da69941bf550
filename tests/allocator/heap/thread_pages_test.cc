// Pages whose thread is gone, is busy elsewhere or never was their owner: none is stranded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "books.h"
#include "heap/thread.h"
#include "stats/counters.h"

namespace ebb::test {
namespace {

// Blocks of all magnitudes, filled with their own size.
std::vector<void*> allocate_many(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<void*> blocks;
  for (int i = 0; i < count; ++i) {
    size_t size = 1 + random() % (random() % 8 == 0 ? 70000 : 2000);
    void* p = ebb_malloc(size);
    memset(p, static_cast<int>(size & 0xFF), size);
    blocks.push_back(p);
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  return blocks;
}

void free_all(const std::vector<void*>& blocks) {
  for (void* p : blocks) ebb_free(p);
}

TEST(ThreadPages, AThreadsFirstSmallBlocksShareAPageAndLaterOnesDoNot) {
  std::thread([] {
    ebb_free(ebb_malloc(1000));  // the thread is known to the allocator by then
    size_t before = books().page_count;
    std::vector<unsigned char*> blocks;
    auto take_one_of_each_class = [&blocks] {
      for (size_t bytes = 16; bytes <= class_bytes(kLendingClass); bytes += 16) {
        blocks.push_back(static_cast<unsigned char*>(ebb_calloc(1, bytes)));
        ASSERT_EQ(std::count(blocks.back(), blocks.back() + bytes, 0), static_cast<long>(bytes));
        memset(blocks.back(), static_cast<int>(blocks.size()), ebb_usable_size(blocks.back()));
      }
    };
    for (int i = 0; i < kBorrowedMost; ++i) take_one_of_each_class();
    EXPECT_EQ(books().page_count, before + 1);
    take_one_of_each_class();
    EXPECT_EQ(books().page_count, before + 1 + kLendingClass);
    for (size_t i = 0; i < blocks.size(); ++i) {
      long bytes = static_cast<long>(ebb_usable_size(blocks[i]));
      ASSERT_EQ(std::count(blocks[i], blocks[i] + bytes, static_cast<unsigned char>(i + 1)), bytes);
    }
    for (unsigned char* block : blocks) ebb_free(block);
  }).join();
}

TEST(ThreadPages, AThreadThatEndsGivesItsPagesBack) {
  size_t before = spans_after_collect();
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::thread([seed] { free_all(allocate_many(seed, 500)); }).join();
    ASSERT_EQ(spans_after_collect(), before);
  }
  EXPECT_EQ(counted(Counter::k_threads_made) - counted(Counter::k_threads_gone), 1u) << "this thread alone is left";
}

TEST(ThreadPages, BlocksOutliveTheirThreadAndTheLastFreeGivesThePageBack) {
  size_t before = spans_after_collect();
  std::vector<void*> blocks;
  std::thread([&blocks] { blocks = allocate_many(7, 3000); }).join();
  EXPECT_GT(spans_after_collect(), before);
  free_all(blocks);
  // No collect is needed: the free that empties an ownerless page claims it.
  EXPECT_EQ(books().page_count + books().large_count, before);
}

TEST(ThreadPages, FullPagesAreFoundByTheFreesThatReachThem) {
  size_t before = spans_after_collect();
  std::vector<void*> blocks;
  for (int i = 0; i < 40000; ++i) blocks.push_back(ebb_malloc(48));  // many full pages, whose owner lives on
  std::thread([&blocks] { free_all(blocks); }).join();
  EXPECT_EQ(spans_after_collect(), before);
}

TEST(ThreadPages, PagesWithoutOwnerAreAllocatedFromBeforeNewOnesAreMade) {
  std::vector<void*> blocks;
  std::thread([&blocks] {
    for (int i = 0; i < 20000; ++i) blocks.push_back(ebb_malloc(200));
  }).join();
  for (size_t i = 0; i < blocks.size(); i += 2) ebb_free(blocks[i]);
  uint64_t made = counted(Counter::k_pages_made);
  std::vector<void*> more;
  for (int i = 0; i < 9000; ++i) more.push_back(ebb_malloc(200));
  EXPECT_LE(counted(Counter::k_pages_made) - made, 2u);
  EXPECT_GT(counted(Counter::k_pages_adopted), 20u);
  for (size_t i = 1; i < blocks.size(); i += 2) ebb_free(blocks[i]);
  free_all(more);
}

// What a heap's pages have been cut into so far.
size_t carved_bytes(ebb_heap_t* heap) {
  ebb_heap_stats_t stats;
  EXPECT_TRUE(ebb_heap_stats_get(heap, &stats, sizeof stats));
  return stats.charged_bytes;
}

TEST(ThreadPages, BlocksThatOthersFreedAreUsedBeforeUntouchedMemory) {
  ebb_heap_t* heap = ebb_heap_new();
  std::vector<void*> blocks;
  for (int i = 0; i < 24; ++i) blocks.push_back(ebb_heap_malloc(heap, 512));
  size_t carved = carved_bytes(heap);
  ASSERT_EQ(carved, 24u * 512) << "no block is left";
  // One comes back from this thread: too few for a batch, but not all that there are.
  ebb_free(blocks[23]);
  std::thread([&blocks] {
    for (size_t i = 0; i < 11; ++i) ebb_free(blocks[i]);
  }).join();
  for (int i = 0; i < 12; ++i) ASSERT_NE(ebb_heap_malloc(heap, 512), nullptr);
  EXPECT_EQ(carved_bytes(heap), carved);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(ThreadPages, BlocksThatCameBackToOtherPagesAreUsedBeforeUntouchedMemory) {
  for (size_t size : {512, 20480, 40960}) {
    ebb_heap_t* heap = ebb_heap_new();
    size_t capacity = (class_slices(class_of(size)) << kSliceShift) / size;
    std::vector<void*> blocks;
    for (size_t i = 0; i < 3 * capacity + 1; ++i) blocks.push_back(ebb_heap_malloc(heap, size));
    size_t carved = carved_bytes(heap);
    // Half of three full pages, while most of the active page was never touched.
    for (size_t i = 0; i < 3 * capacity; i += 2) ebb_free(blocks[i]);
    for (size_t i = 0; i < 3 * (capacity / 2); ++i) {
      ASSERT_NE(ebb_heap_malloc(heap, size), nullptr);
      ASSERT_LE(carved_bytes(heap), carved + 4 * KiB) << "after " << i << " blocks of " << size;
    }
    EXPECT_TRUE(ebb_heap_destroy(heap));
  }
}

TEST(ThreadPages, ThreadsThatEndWhileOthersFreeTheirBlocks) {
  size_t before = spans_after_collect();
  for (int round = 0; round < 30; ++round) {
    std::vector<std::vector<void*>> given(4);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) {
      threads.emplace_back([&given, i, round] { given[i] = allocate_many(i * 100 + static_cast<unsigned>(round), 300); });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    for (unsigned i = 0; i < 4; ++i) {
      threads.emplace_back([&given, i] {
        // Each frees a quarter of everybody's, and ends.
        for (const std::vector<void*>& blocks : given) {
          for (size_t k = i; k < blocks.size(); k += 4) ebb_free(blocks[k]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(spans_after_collect(), before) << "round " << round;
  }
  EXPECT_TRUE(arenas_are_valid());
}

// A producer that never frees and a consumer that never allocates, at once.
TEST(ThreadPages, PagesOfARunningProducerComeBack) {
  size_t before = spans_after_collect();
  constexpr size_t kRing = 512, kBlocks = 200000;
  std::vector<std::atomic<void*>> ring(kRing);
  std::thread consumer([&ring] {
    for (size_t i = 0; i < kBlocks; ++i) {
      void* p;
      while ((p = ring[i % kRing].exchange(nullptr)) == nullptr) std::this_thread::yield();
      ebb_free(p);
    }
  });
  uint64_t made = counted(Counter::k_pages_made);
  for (size_t i = 0; i < kBlocks; ++i) {
    void* p = ebb_malloc(96);
    while (ring[i % kRing].load() != nullptr) std::this_thread::yield();
    ring[i % kRing].store(p);
  }
  consumer.join();
  EXPECT_LT(counted(Counter::k_pages_made) - made, 60u) << "the ring holds one page's worth of blocks";
  EXPECT_EQ(spans_after_collect(), before);
}

TEST(ThreadPages, CountersNeverSayThatMoreCameBackThanWasMade) {
  EXPECT_LE(counted(Counter::k_pages_freed), counted(Counter::k_pages_made));
  EXPECT_LE(counted(Counter::k_large_freed), counted(Counter::k_large_made));
  EXPECT_LE(counted(Counter::k_threads_gone), counted(Counter::k_threads_made));
}

}  // namespace
}  // namespace ebb::test
