// Rounds of many heaps: what they need is what the first round needed, whatever their number.
//
// Without the scavenger's thread, which might hold a page just when the pages are counted.
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "arena/arena_list.h"
#include "base/bits.h"
#include "heap/heap.h"
#include "heaps/contents.h"
#include "heaps/worker.h"
#include "os/os.h"
#include "page/remote.h"

namespace ebb::test {
namespace {

struct Level {
  size_t span_bytes = 0;
  size_t ownerless_pages = 0;
  size_t committed_bytes = 0;
};

Level level() {
  Level now;
  now.span_bytes = span_bytes_in_use();
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    now.committed_bytes += arena->usage().committed_bytes;
    arena->for_each_used([&now](Slice* span) {
      bool ownerless = (span->remote.load() & remote::kOwnerless) != 0;
      now.ownerless_pages += span->kind == SliceKind::kPage && ownerless;
    });
  }
  return now;
}

class HeapRounds : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { ASSERT_TRUE(ebb_option_set("scavenger", 0)); }
};

TEST_P(HeapRounds, OfHeapsDestroyedAtOnce) {
  const size_t heaps = GetParam();
  Level second{}, second_peak{};
  for (size_t round = 0; round < 20; ++round) {
    std::vector<ebb_heap_t*> all;
    for (size_t i = 0; i < heaps; ++i) {
      all.push_back(ebb_heap_new());
      for (size_t k = 0; k < 20; ++k) ASSERT_NE(ebb_heap_malloc(all.back(), 16 + (i * 20 + k) * 7 % 1000), nullptr);
    }
    Level peak = level();
    for (ebb_heap_t* heap : all) ASSERT_TRUE(ebb_heap_destroy(heap));
    Level end = level();
    if (round == 1) second = end, second_peak = peak;
    if (round < 2) continue;
    ASSERT_EQ(end.span_bytes, second.span_bytes);
    ASSERT_EQ(end.ownerless_pages, second.ownerless_pages);
    ASSERT_EQ(peak.span_bytes, second_peak.span_bytes);
    ASSERT_EQ(peak.committed_bytes, second_peak.committed_bytes);
  }
}

size_t resident_block_bytes() {
  size_t bytes = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    arena->for_each_used([&bytes](Slice* span) {
      if (span->kind == SliceKind::kPage) bytes += os::resident_bytes(span->start, size_t{span->slices} << kSliceShift);
    });
  }
  return bytes;
}

// OS pages that blocks of the heaps lie in: what a round needs, whatever was there before.
size_t needed_bytes(const std::vector<std::pair<void*, size_t>>& blocks) {
  std::set<uintptr_t> os_pages;
  for (const auto& [block, size] : blocks) {
    uintptr_t first = reinterpret_cast<uintptr_t>(block);
    for (uintptr_t at = align_down(first, os::page_bytes()); at < first + size; at += os::page_bytes()) os_pages.insert(at);
  }
  return os_pages.size() * os::page_bytes();
}

// Each round's sizes are other ones, so a slice serves pages of all classes in turn, long ones and short ones.
TEST(HeapRoundsOfOtherSizes, HoldWhatTheirBlocksNeed) {
  ASSERT_TRUE(ebb_option_set("scavenger", 0));
  constexpr size_t kHeaps = 400, kBlocks = 64;
  std::minstd_rand random(7);
  size_t beyond_in_first = 0;
  for (size_t round = 0; round < 6; ++round) {
    std::vector<ebb_heap_t*> all;
    std::vector<std::pair<void*, size_t>> blocks;
    for (size_t i = 0; i < kHeaps; ++i) {
      all.push_back(ebb_heap_new());
      for (size_t k = 0; k < kBlocks; ++k) {
        size_t size = 16 + random() % 1009;
        void* block = ebb_heap_malloc(all.back(), size);
        ASSERT_NE(block, nullptr);
        memset(block, 1, size);
        blocks.emplace_back(block, size);
      }
    }
    size_t beyond = resident_block_bytes() - needed_bytes(blocks);
    if (round == 0) beyond_in_first = beyond;
    EXPECT_LE(beyond, beyond_in_first + 256 * KiB) << "in round " << round;
    for (ebb_heap_t* heap : all) ASSERT_TRUE(ebb_heap_destroy(heap));
  }
}

size_t resident_metadata_bytes() {
  size_t bytes = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    arena->for_each_used([&bytes](Slice* span) {
      if (span->kind == SliceKind::kMeta) bytes += os::resident_bytes(span->start, size_t{span->slices} << kSliceShift);
    });
  }
  return bytes;
}

// The structures of heaps, and those of the threads that use them, go with the heaps.
TEST(HeapRoundsOfManyAtOnce, LeaveNoMetadataBehind) {
  ASSERT_TRUE(ebb_option_set("scavenger", 0));
  constexpr size_t kHeaps = 1000;
  Worker workers[2];
  ebb_collect(true);
  size_t before = resident_metadata_bytes();
  for (size_t round = 0; round < 3; ++round) {
    std::vector<ebb_heap_t*> all;
    for (size_t i = 0; i < kHeaps; ++i) all.push_back(ebb_heap_new());
    for (Worker& worker : workers) {
      worker.run([&all] {
        for (ebb_heap_t* heap : all) ASSERT_NE(ebb_heap_malloc(heap, 200), nullptr);
      });
    }
    EXPECT_GE(resident_metadata_bytes(), before + kHeaps * (sizeof(FirstClassHeap) + sizeof(ThreadHeap)));
    // Every other one first, so that no slice of structures is empty before half of them are gone.
    for (size_t i = 0; i < kHeaps; ++i) ASSERT_TRUE(ebb_heap_destroy(all[i * 2 % kHeaps + (i >= kHeaps / 2)]));
    ebb_collect(true);
    EXPECT_LE(resident_metadata_bytes(), before + 3 * kSliceBytes) << "in round " << round;
  }
}

// Four threads use each heap; a fifth ends them.
TEST_P(HeapRounds, OfHeapsUsedByManyThreads) {
  const size_t heaps = GetParam() / 5;
  Level second{};
  Worker workers[4];
  for (size_t round = 0; round < 8; ++round) {
    std::vector<ebb_heap_t*> all;
    for (size_t i = 0; i < heaps; ++i) all.push_back(ebb_heap_new());
    for (Worker& worker : workers) {
      worker.start([&all] {
        for (ebb_heap_t* heap : all) ASSERT_NE(ebb_heap_malloc(heap, 200), nullptr);
      });
    }
    for (Worker& worker : workers) worker.wait();
    for (ebb_heap_t* heap : all) ASSERT_TRUE(ebb_heap_destroy(heap));
    Level end = level();
    if (round == 1) second = end;
    if (round < 2) continue;
    ASSERT_EQ(end.span_bytes, second.span_bytes);
    ASSERT_EQ(end.ownerless_pages, second.ownerless_pages);
  }
}

// A third of the blocks survive the delete of their heap and are freed by other threads.
TEST_P(HeapRounds, OfHeapsDeletedWithSurvivors) {
  const size_t heaps = GetParam();
  Level second{};
  Worker freers[2];
  for (size_t round = 0; round < 8; ++round) {
    std::vector<Held> survivors[2];
    for (size_t i = 0; i < heaps; ++i) {
      ebb_heap_t* heap = ebb_heap_new();
      for (size_t k = 0; k < 15; ++k) {
        Held held = hold(heap, 16 + (i * 15 + k) * 11 % 1000, k);
        if (k % 3 == 0) survivors[k % 2].push_back(held);
        else ebb_free(held.bytes);
      }
      ASSERT_TRUE(ebb_heap_delete(heap));
    }
    for (size_t f = 0; f < 2; ++f) {
      freers[f].start([&survivors, f] {
        expect_intact(survivors[f]);
        free_all(&survivors[f]);
      });
    }
    for (Worker& freer : freers) freer.wait();
    // With the last block the last page goes, but for what a freeing thread keeps.
    Level now = level();
    if (round == 1) second = now;
    if (round < 2) continue;
    ASSERT_EQ(now.span_bytes, second.span_bytes);
    ASSERT_EQ(now.ownerless_pages, second.ownerless_pages);
  }
}

size_t block_spans() {
  size_t spans = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    arena->for_each_used([&spans](Slice* span) { spans += span->kind == SliceKind::kPage || span->kind == SliceKind::kLarge; });
  }
  return spans;
}

size_t dirty_bytes() {
  size_t bytes = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) bytes += arena->usage().dirty_bytes;
  return bytes;
}

size_t resident_table_bytes() {
  size_t bytes = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) bytes += arena->resident_table_bytes();
  return bytes;
}

// The threads that allocated rest all the time, and others free what is left: with the last block goes the last page.
TEST(HeapRoundsOfSurvivors, HoldNothingWhenTheLastBlockIsFreed) {
  ASSERT_TRUE(ebb_option_set("scavenger", 0));
  Worker makers[2], freers[2];
  for (Worker* worker : {&makers[0], &makers[1], &freers[0], &freers[1]}) {
    worker->run([] {
      ebb_free(ebb_malloc(10));
      ebb_collect(false);
    });
  }
  ebb_collect(true);
  const size_t before = block_spans();
  for (size_t round = 0; round < 3; ++round) {
    std::vector<ebb_heap_t*> all(200);
    for (ebb_heap_t*& heap : all) heap = ebb_heap_new();
    std::vector<Held> survivors[2];
    for (size_t m = 0; m < 2; ++m) {
      makers[m].run([&, m] {
        for (size_t i = 0; i < all.size(); ++i) {
          std::vector<Held> blocks = hold_many(all[i], 30, i * 2 + m);
          for (size_t k = 0; k < blocks.size(); ++k) {
            if (k % 3 == 0) survivors[m].push_back(blocks[k]);
            else ebb_free(blocks[k].bytes);
          }
        }
      });
    }
    for (ebb_heap_t* heap : all) ASSERT_TRUE(ebb_heap_delete(heap));
    EXPECT_GT(block_spans(), before);
    EXPECT_GE(resident_table_bytes(), (block_spans() - before) * kPageStride);
    for (size_t f = 0; f < 2; ++f) {
      freers[f].start([&survivors, f] {
        expect_intact(survivors[f]);
        free_all(&survivors[f]);
      });
    }
    for (Worker& freer : freers) freer.wait();
    ebb_collect(true);
    EXPECT_EQ(block_spans(), before) << "in round " << round;
    EXPECT_EQ(dirty_bytes(), 0u);
    EXPECT_LE(resident_metadata_bytes(), 12 * kSliceBytes);
    EXPECT_LE(resident_table_bytes(), 256 * KiB);
  }
}

INSTANTIATE_TEST_SUITE_P(Heaps, HeapRounds, testing::Values(100, 1000));

}  // namespace
}  // namespace ebb::test
