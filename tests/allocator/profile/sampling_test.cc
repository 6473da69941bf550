// Which allocations are sampled: each byte is as likely as any other, whatever the program's rhythm. Seeds are fixed,
// so these tests cannot fail by chance.
#include <cmath>
#include <random>

#include "profile/profiled.h"

namespace {

using ebb::test::kEveryBlock;
using ebb::test::Profiled;

constexpr double kSigmas = 4.5;

class Sampling : public Profiled {
 protected:
  // Allocates a block, adds what it has and the variance of its estimate, and returns it.
  void* counted(void* p) {
    double size = static_cast<double>(ebb_usable_size(p)), share = -std::expm1(-size / mean_);
    bytes_ += size;
    variance_ += size * size * (1 - share) / share;
    return p;
  }
  void expect_weight_is_bytes() {
    EXPECT_GT(taken(), 100u);
    EXPECT_NEAR(weight(), bytes_, kSigmas * std::sqrt(variance_));
  }

  double mean_ = 1024, bytes_ = 0, variance_ = 0;
};

// Lists hold an even number of these blocks, so whoever samples where a list ends sees one place alone.
TEST_F(Sampling, TwoPlacesInTurnAreSampledAlike) {
  constexpr int kTurns = 30000;
  start(1024);
  int sampled[2] = {};
  std::vector<void*> live;
  for (int i = 0; i < 2 * kTurns; ++i) {
    void* p = ebb_malloc(64);
    if (p == last_sampled()) ++sampled[i % 2];
    live.push_back(p);
    if (live.size() == 512) {
      for (void* block : live) ebb_free(block);
      live.clear();
    }
  }
  for (void* block : live) ebb_free(block);
  double share = -std::expm1(-64.0 / 1024), expected = kTurns * share;
  for (int count : sampled) EXPECT_NEAR(count, expected, kSigmas * std::sqrt(expected * (1 - share)));
}

TEST_F(Sampling, TheWeightsAddUpToWhatWasAllocated) {
  start(static_cast<size_t>(mean_));
  std::mt19937 random(3);
  ebb_heap_t* heap = ebb_heap_new();
  for (int i = 0; i < 6000; ++i) {
    size_t size = 1 + random() % (i % 16 == 0 ? 6000 : 400);
    void* blocks[] = {counted(ebb_malloc(size)), counted(ebb_heap_malloc(heap, size)), counted(ebb_calloc(1, size)),
                      counted(ebb_aligned_alloc(64, size))};
    for (void* block : blocks) ebb_free(block);
  }
  expect_weight_is_bytes();
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST_F(Sampling, LargeBlocksCount) {
  mean_ = 1 << 20;
  start(static_cast<size_t>(mean_));
  ebb_heap_t* heap = ebb_heap_new();
  for (int i = 0; i < 1500; ++i) {
    ebb_free(counted(ebb_malloc(70000 + 100 * static_cast<size_t>(i))));
    ebb_free(counted(ebb_heap_calloc(heap, 1, 100000)));
  }
  expect_weight_is_bytes();
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

// What stands on the lists was counted; given up, it is counted again when it is allocated after all.
TEST_F(Sampling, ListsThatAreGivenUpChangeNothing) {
  start(static_cast<size_t>(mean_));
  for (int i = 0; i < 4000; ++i) {
    void* blocks[5];
    for (void*& block : blocks) block = counted(ebb_malloc(200));
    if (i % 3 == 0) ebb_collect(false);
    for (void* block : blocks) ebb_free(block);
  }
  expect_weight_is_bytes();
}

TEST_F(Sampling, EveryBlockWithAMeanOfOneByte) {
  start(kEveryBlock);
  for (size_t size : {1, 16, 100, 1000, 5000, 65536, 65537, 1 << 20}) {
    void* p = ebb_malloc(size);
    EXPECT_EQ(last_sampled(), p) << size;
    EXPECT_EQ(ebb_usable_size(p), ebb_good_size(size)) << size;
    ebb_free_sized(p, size);
  }
  EXPECT_EQ(taken(), 8u);
  EXPECT_EQ(ended(), 8u);
}

TEST_F(Sampling, NothingWhenStopped) {
  start(kEveryBlock);
  ebb_profile_stop();
  for (int i = 0; i < 1000; ++i) ebb_free(ebb_malloc(static_cast<size_t>(i)));
  EXPECT_EQ(taken(), 0u);
}

TEST_F(Sampling, AlignmentIsKept) {
  start(kEveryBlock);
  for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 2) {
    for (size_t size : {size_t{1}, alignment, 3 * alignment + 5}) {
      void* p = ebb_aligned_alloc(alignment, size);
      EXPECT_EQ(last_sampled(), p);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u) << alignment << " " << size;
      ebb_free_aligned_sized(p, alignment, size);
    }
  }
}

TEST_F(Sampling, ZeroedBlocksAreZero) {
  start(kEveryBlock);
  for (int turn = 0; turn < 3; ++turn) {
    for (size_t size : {24, 1000, 3000, 60000, 200000}) {
      char* p = static_cast<char*>(ebb_calloc(1, size));
      EXPECT_EQ(last_sampled(), p);
      EXPECT_EQ(std::string(p, size), std::string(size, '\0')) << size;
      memset(p, 0xAB, ebb_usable_size(p));
      ebb_free(p);
    }
  }
}

TEST_F(Sampling, RefusesMeansThatMakeNoSense) {
  for (size_t mean : {size_t{0}, (size_t{1} << 40) + 1, SIZE_MAX}) {
    errno = 0;
    EXPECT_FALSE(ebb_profile_start(mean)) << mean;
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(Sampling, ALimitedHeapGivesItsBlocksWithoutSamples) {
  start(kEveryBlock);
  ebb_heap_t* heap = ebb_heap_new();
  uint64_t lost = ebb::counted(ebb::Counter::k_samples_lost);
  void* first = ebb_heap_malloc(heap, 64);  // sampled, and charged
  // Room for a block of 48 in a page, none for a second one with a span of its own.
  ASSERT_TRUE(ebb_heap_set_limit(heap, 64 + 48 + 16, nullptr, nullptr));
  size_t before = taken();
  void* second = ebb_heap_malloc(heap, 48);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(taken(), before);
  EXPECT_EQ(ebb::counted(ebb::Counter::k_samples_lost), lost + 1);
  EXPECT_EQ(ebb_heap_malloc(heap, 48), nullptr);
  ebb_free(second);
  ebb_free(first);
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

}  // namespace
