// Limits of heaps.
#include <errno.h>

#include <thread>

#include "base/units.h"
#include "heaps/contents.h"
#include "heaps/worker.h"

namespace ebb::test {
namespace {

struct Calls {
  int count = 0;
  ebb_heap_t* heap = nullptr;
  size_t wanted = 0;
};

void reached(ebb_heap_t* heap, size_t wanted, void* arg) {
  Calls* calls = static_cast<Calls*>(arg);
  ++calls->count;
  calls->heap = heap;
  calls->wanted = wanted;
  ebb_free(ebb_malloc(64));  // nothing is held
}

class HeapLimit : public testing::TestWithParam<size_t> {};

TEST_P(HeapLimit, EndsAllocationsOfThatHeapAlone) {
  const size_t size = GetParam();
  constexpr size_t kLimit = 1 * MiB;
  ebb_heap_t* heap = ebb_heap_new();
  Calls calls;
  ASSERT_TRUE(ebb_heap_set_limit(heap, kLimit, reached, &calls));
  std::vector<Held> all;
  errno = 0;
  for (size_t i = 0;; ++i) {
    Held held = hold(heap, size, i);
    if (held.bytes == nullptr) break;
    all.push_back(held);
    ASSERT_LE(stats_of(heap).charged_bytes, kLimit);
    ASSERT_LE(all.size() * size, kLimit);
  }
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(calls.count, 1);
  EXPECT_EQ(calls.heap, heap);
  EXPECT_EQ(calls.wanted, ebb_good_size(size));
  // All but a block's worth was handed out.
  EXPECT_GT((all.size() + 1) * ebb_good_size(size), kLimit);
  void* elsewhere = ebb_malloc(size);
  EXPECT_NE(elsewhere, nullptr);
  ebb_free(elsewhere);
  // What is freed is had again, also for another size.
  expect_intact(all);
  free_all(&all);
  void* other = ebb_heap_malloc(heap, size / 2 + 3000);
  EXPECT_NE(other, nullptr);
  EXPECT_EQ(calls.count, 1);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

INSTANTIATE_TEST_SUITE_P(Sizes, HeapLimit, testing::Values(16, 208, 1000, 5000, 30000, 100000, 400000));

TEST(HeapLimits, CanBeRaisedAndTakenAway) {
  ebb_heap_t* heap = ebb_heap_new();
  ASSERT_TRUE(ebb_heap_set_limit(heap, 100000, nullptr, nullptr));
  EXPECT_EQ(ebb_heap_malloc(heap, 120000), nullptr);
  void* p = ebb_heap_malloc(heap, 90000);
  ASSERT_NE(p, nullptr);
  // It can't grow beyond the limit, and stays as it was.
  EXPECT_EQ(ebb_heap_realloc(heap, p, 200000), nullptr);
  EXPECT_GE(ebb_usable_size(p), 90000u);
  ASSERT_TRUE(ebb_heap_set_limit(heap, 300000, nullptr, nullptr));
  p = ebb_heap_realloc(heap, p, 200000);
  EXPECT_NE(p, nullptr);
  ASSERT_TRUE(ebb_heap_set_limit(heap, 0, nullptr, nullptr));
  EXPECT_NE(ebb_heap_malloc(heap, 5 * MiB), nullptr);
  EXPECT_EQ(stats_of(heap).limit_bytes, 0u);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapLimits, HoldForAllThreadsTogether) {
  constexpr size_t kLimit = 4 * MiB;
  ebb_heap_t* heap = ebb_heap_new();
  ASSERT_TRUE(ebb_heap_set_limit(heap, kLimit, nullptr, nullptr));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([heap] {
      while (ebb_heap_malloc(heap, 500) != nullptr) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ebb_heap_stats_t stats = stats_of(heap);
  EXPECT_LE(stats.charged_bytes, kLimit);
  EXPECT_GT(stats.live_bytes, kLimit * 9 / 10);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST(HeapLimits, HoldForMallocOfAThreadWithThatDefault) {
  ebb_heap_t* heap = ebb_heap_new();
  Calls calls;
  ASSERT_TRUE(ebb_heap_set_limit(heap, 200000, reached, &calls));
  Worker worker;
  size_t got = 0;
  worker.run([&] {
    ebb_heap_set_default(heap);
    while (ebb_malloc(1000) != nullptr) ++got;
    ebb_heap_set_default(ebb_heap_main());
  });
  EXPECT_LE(got, 200u);
  EXPECT_GT(got, 150u);
  EXPECT_GE(calls.count, 1);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

}  // namespace
}  // namespace ebb::test
