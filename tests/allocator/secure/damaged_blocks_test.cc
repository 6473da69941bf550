// What the secure build finds besides wrong heaps: writes to free blocks, frees of what is no block, two frees at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "ebb/ebb.h"

namespace ebb::test {
namespace {

constexpr size_t kSize = 128;

class DamagedBlocks : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// The compiler knows nothing of what it returns.
char* opaque(void* p) {
  __asm__ volatile("" : "+r"(p));
  return static_cast<char*>(p);
}

char* block(size_t size = kSize) { return opaque(ebb_malloc(size)); }

void allocate_many(size_t size = kSize) {
  for (int i = 0; i < 5000; ++i) opaque(ebb_malloc(size));
}

// Writes to a block after its free, then allocates until it should be handed out.
void write_after_free(size_t offset, size_t size) {
  char* p = block(size);
  ebb_free(p);
  opaque(p)[offset] ^= 1;
  allocate_many(size);
}

TEST_F(DamagedBlocks, EveryByteOfTheLinkAndItsSealCounts) {
  for (size_t offset : {0, 5, 7, 8, 13, 15}) {
    EXPECT_DEATH(write_after_free(offset, kSize), "the free block .* was written to after it was freed: .* class .*page")
        << "byte " << offset;
  }
  EXPECT_DEATH(write_after_free(0, 3000), "was written to after it was freed");
}

TEST_F(DamagedBlocks, ALinkCopiedFromAnotherBlockIsNone) {
  auto copy_link = [] {
    char* one = block();
    char* two = block();
    ebb_free(one);
    ebb_free(two);
    memcpy(opaque(two), one, 16);
    allocate_many();
  };
  EXPECT_DEATH(copy_link(), "was written to after it was freed");
}

TEST_F(DamagedBlocks, ADamagedListOfAnotherThreadsFrees) {
  auto damage_remote = [] {
    std::vector<char*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(block());
    std::thread([&] {
      for (char* p : blocks) ebb_free(p);
    }).join();
    for (char* p : blocks) opaque(p)[3] = 'x';
    allocate_many();
  };
  EXPECT_DEATH(damage_remote(), "was written to after it was freed");
}

TEST_F(DamagedBlocks, DoubleFreeAlsoWhenTheBlockWasWrittenTo) {
  auto twice = [](size_t size) {
    char* p = block(size);
    char* other = block(size);
    ebb_free(p);
    ebb_free(other);
    memset(opaque(p), 0, 16);
    ebb_free(opaque(p));
  };
  EXPECT_DEATH(twice(kSize), "freed before: .*128 bytes, class .*, main heap, owned by this thread");
  EXPECT_DEATH(twice(3000), "freed before");
  EXPECT_DEATH(twice(40000), "freed before");
  EXPECT_DEATH(twice(700000), "freed before, or never");
}

TEST_F(DamagedBlocks, DoubleFreeByAnotherThread) {
  auto twice = [](bool owner_first) {
    char* p = block();
    char* keeps_the_page = block();
    if (owner_first) ebb_free(p);
    std::thread([p] { ebb_free(p); }).join();
    if (!owner_first) ebb_free(opaque(p));
    ebb_free(keeps_the_page);
  };
  EXPECT_DEATH(twice(true), "freed before");
  EXPECT_DEATH(twice(false), "freed before");
}

// Of frees of one block at the same moment all but one are refused, whichever wins.
TEST_F(DamagedBlocks, TwoFreesAtOnce) {
  auto race = [] {
    for (int round = 0; round < 2000; ++round) {
      char* p = block(round % 2 == 0 ? kSize : 40000);
      std::atomic<int> ready{0};
      auto free_it = [&] {
        ready.fetch_add(1);
        while (ready.load() < 2) {
        }
        ebb_free(p);
      };
      std::thread other(free_it);
      free_it();
      other.join();
    }
  };
  EXPECT_DEATH(race(), "which was freed before|which is not a live block");
}

TEST_F(DamagedBlocks, PointersIntoBlocks) {
  EXPECT_DEATH(ebb_free(block() + 16), "free of .*, which is not a live block: it lies 16 bytes inside a block of 128");
  EXPECT_DEATH(ebb_free(block() + 1), "it lies 1 bytes inside");
  EXPECT_DEATH(opaque(ebb_realloc(block() + 16, 10)), "realloc of .*, which is not a live block");
  EXPECT_DEATH((void)ebb_usable_size(block() + 64), "size request of .*, which is not a live block");
  EXPECT_DEATH(ebb_free(block(200000) + 64), "the block there begins at");
}

TEST_F(DamagedBlocks, AFreeBlockHasNoSizeAndCannotGrow) {
  auto freed = [] {
    char* p = block();
    ebb_free(p);
    return opaque(p);
  };
  EXPECT_DEATH(opaque(ebb_realloc(freed(), 1000)), "realloc of .*, which is not a live block");
  EXPECT_DEATH((void)ebb_usable_size(freed()), "size request of .*, which is not a live block");
}

TEST_F(DamagedBlocks, ASizedFreeOfAFreeBlockIsADoubleFree) {
  auto twice = [] {
    char* p = block();
    ebb_free_sized(p, kSize);
    ebb_free_sized(opaque(p), kSize);
  };
  EXPECT_DEATH(twice(), "free of .*, which was freed before");
}

TEST_F(DamagedBlocks, AHeapsReallocOfWhatIsNoBlockOfIt) {
  ebb_heap_t* heap = ebb_heap_new();
  char* p = opaque(ebb_heap_malloc(heap, kSize));
  char* freed = opaque(ebb_heap_malloc(heap, kSize));
  ebb_free(freed);
  char* large = opaque(ebb_heap_malloc(heap, 200000));
  EXPECT_DEATH(opaque(ebb_heap_realloc(heap, p + 16, kSize)), "realloc of .*, which is not a live block");
  EXPECT_DEATH(opaque(ebb_heap_realloc(heap, opaque(freed), kSize)), "realloc of .*, which is not a live block");
  EXPECT_DEATH(opaque(ebb_heap_realloc(heap, large + 64, 200000)), "realloc of .*, which is not a live block");
  EXPECT_TRUE(ebb_heap_destroy(heap));
}

TEST_F(DamagedBlocks, ABlockOfADestroyedHeap) {
  auto use = [] {
    ebb_heap_t* heap = ebb_heap_new();
    char* p = opaque(ebb_heap_malloc(heap, kSize));
    ebb_heap_destroy(heap);
    ebb_free(p);
  };
  EXPECT_DEATH(use(), "which is not a live block");
}

}  // namespace
}  // namespace ebb::test
