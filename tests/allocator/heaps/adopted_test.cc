// Arenas of reserved and of adopted memory.
#include <errno.h>
#include <sys/mman.h>

#include <thread>

#include "arena/cage.h"
#include "base/bits.h"
#include "base/units.h"
#include "heaps/contents.h"
#include "os/os.h"

namespace ebb::test {
namespace {

// A mapping of the test's own with inaccessible space around the range that is adopted.
class Mapping {
 public:
  // The range starts `offset` behind a multiple of 64 MiB.
  Mapping(size_t bytes, size_t offset, int protection = PROT_READ | PROT_WRITE) : bytes_(bytes) {
    whole_bytes_ = bytes + offset + 128 * MiB;
    whole_ = mmap(nullptr, whole_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    start_ = reinterpret_cast<char*>(align_up(reinterpret_cast<uintptr_t>(whole_), 64 * MiB) + offset);
    mprotect(start_, bytes, protection);
  }
  ~Mapping() { munmap(whole_, whole_bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* start() const { return start_; }
  size_t bytes() const { return bytes_; }
  bool holds(const void* p, size_t size) const {
    const char* at = static_cast<const char*>(p);
    return at >= start_ && at + size <= start_ + bytes_;
  }

 private:
  void* whole_;
  size_t whole_bytes_, bytes_;
  char* start_;
};

// Fills the heap until it refuses, checks all blocks, and frees them. Returns the bytes that fitted.
size_t fill(ebb_heap_t* heap, size_t size) {
  std::vector<Held> all;
  for (size_t i = 0;; ++i) {
    Held held = hold(heap, size, i);
    if (held.bytes == nullptr) break;
    all.push_back(held);
  }
  expect_intact(all);
  size_t bytes = all.size() * size;
  free_all(&all);
  return bytes;
}

struct Place {
  size_t bytes, offset;
  unsigned flags;
};

class Adopted : public testing::TestWithParam<Place> {};

// Everything around the range faults, so no byte outside it is touched.
TEST_P(Adopted, ServesHeapsFromItsRangeAlone) {
  const Place place = GetParam();
  Mapping mapping(place.bytes, place.offset, (place.flags & EBB_ARENA_COMMITTED) != 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  if ((place.flags & EBB_ARENA_COMMITTED) != 0 && (place.flags & EBB_ARENA_ZERO) == 0) memset(mapping.start(), 0xEE, mapping.bytes());
  ebb_arena_t arena;
  ASSERT_TRUE(ebb_arena_adopt(mapping.start(), mapping.bytes(), place.flags | EBB_ARENA_EXCLUSIVE, &arena)) << errno;
  size_t size;
  EXPECT_EQ(ebb_arena_area(arena, &size), mapping.start());
  EXPECT_EQ(size, mapping.bytes());
  EXPECT_TRUE(ebb_arena_contains(arena, mapping.start() + mapping.bytes() - 1));
  EXPECT_FALSE(ebb_arena_contains(arena, mapping.start() + mapping.bytes()));
  ebb_heap_t* heap = ebb_heap_new_in(arena);
  for (size_t block : {size_t{48}, size_t{700}, size_t{3000}, size_t{12000}, size_t{70000}}) {
    if (block * 256 > mapping.bytes()) break;  // each class takes a page, of up to a mebibyte
    void* p = ebb_heap_malloc(heap, block);
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(mapping.holds(p, block));
    EXPECT_TRUE(ebb_arena_contains(arena, p));
    EXPECT_EQ(ebb_heap_of(p), heap);
    unsigned char* zeroed = static_cast<unsigned char*>(ebb_heap_calloc(heap, 1, block));
    for (size_t i = 0; i < block; ++i) ASSERT_EQ(zeroed[i], 0);
    void* aligned = ebb_heap_aligned_alloc(heap, 4096, block);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 4096, 0u);
    p = ebb_heap_realloc(heap, p, block * 2);
    EXPECT_TRUE(mapping.holds(p, block * 2));
    ebb_free(p);
    ebb_free(zeroed);
    ebb_free(aligned);
  }
  // Nearly all of it is of use, more than once, and for more than one size.
  size_t least = mapping.bytes() - mapping.bytes() / 8 - 3 * kSliceBytes;
  EXPECT_GE(fill(heap, 1000), least - least / 8);
  ebb_heap_collect(heap, true);
  EXPECT_GE(fill(heap, 240), least - least / 8);
  EXPECT_FALSE(ebb_arena_release(arena)) << "a heap is in it";
  EXPECT_EQ(errno, EBUSY);
  ASSERT_TRUE(ebb_heap_destroy(heap));
  ASSERT_TRUE(ebb_arena_release(arena));
  EXPECT_EQ(ebb_heap_of(mapping.start() + mapping.bytes() / 2), nullptr);
  // It is the program's again, and may be adopted again. Parts that were never used may not be accessible yet.
  mprotect(mapping.start(), mapping.bytes(), PROT_READ | PROT_WRITE);
  memset(mapping.start(), 1, mapping.bytes());
  ASSERT_TRUE(ebb_arena_adopt(mapping.start(), mapping.bytes(), EBB_ARENA_COMMITTED, &arena));
  ASSERT_TRUE(ebb_arena_release(arena));
}

INSTANTIATE_TEST_SUITE_P(Places, Adopted,
                         testing::Values(Place{1 * MiB, 0, EBB_ARENA_COMMITTED | EBB_ARENA_ZERO},
                                         Place{1 * MiB, 4 * KiB, EBB_ARENA_COMMITTED},
                                         Place{1 * MiB, 60 * KiB, 0}, Place{1 * MiB + 4 * KiB, 36 * KiB, EBB_ARENA_PINNED},
                                         Place{64 * MiB, 16 * KiB, EBB_ARENA_COMMITTED | EBB_ARENA_ZERO},
                                         Place{64 * MiB, 16 * KiB, EBB_ARENA_ZERO},
                                         Place{64 * MiB, 16 * KiB, EBB_ARENA_COMMITTED | EBB_ARENA_PINNED},
                                         Place{3 * MiB + 20 * KiB, 8 * KiB, EBB_ARENA_NODE(0)}));

TEST(Arenas, PinnedMemoryIsNeverGivenBack) {
  Mapping mapping(8 * MiB, 0);
  memset(mapping.start(), 1, mapping.bytes());
  ebb_arena_t arena;
  ASSERT_TRUE(ebb_arena_adopt(mapping.start(), mapping.bytes(), EBB_ARENA_COMMITTED | EBB_ARENA_PINNED | EBB_ARENA_EXCLUSIVE, &arena));
  ebb_heap_t* heap = ebb_heap_new_in(arena);
  std::vector<Held> all, kept;
  for (size_t i = 0; i < 20000; ++i) all.push_back(hold(heap, 200, i));
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 500 == 0) kept.push_back(all[i]);
    else ebb_free(all[i].bytes);
  }
  void* large = ebb_heap_malloc(heap, 2 * MiB);
  ebb_free(large);
  ebb_heap_collect(heap, true);
  EXPECT_EQ(os::resident_bytes(mapping.start(), mapping.bytes()), mapping.bytes());
  expect_intact(kept);
  ASSERT_TRUE(ebb_heap_destroy(heap));
  ebb_collect(true);
  EXPECT_EQ(os::resident_bytes(mapping.start(), mapping.bytes()), mapping.bytes());
  ASSERT_TRUE(ebb_arena_release(arena));
}

TEST(Arenas, OtherMemoryIsGivenBack) {
  Mapping mapping(8 * MiB, 0);
  ebb_arena_t arena;
  ASSERT_TRUE(ebb_arena_adopt(mapping.start(), mapping.bytes(), EBB_ARENA_COMMITTED | EBB_ARENA_ZERO | EBB_ARENA_EXCLUSIVE, &arena));
  ebb_heap_t* heap = ebb_heap_new_in(arena);
  for (size_t i = 0; i < 20000; ++i) hold(heap, 200, i);
  EXPECT_GT(os::resident_bytes(mapping.start(), mapping.bytes()), 3 * MiB);
  ASSERT_TRUE(ebb_heap_destroy(heap));
  ebb_collect(true);
  EXPECT_LT(os::resident_bytes(mapping.start(), mapping.bytes()), 128 * KiB);
  ASSERT_TRUE(ebb_arena_release(arena));
}

TEST(Arenas, ServeEverybodyUnlessExclusive) {
  ebb_arena_t exclusive;
  ASSERT_TRUE(ebb_arena_reserve(4 * MiB, EBB_ARENA_EXCLUSIVE, &exclusive));
  std::vector<Held> all = hold_many(ebb_heap_main(), 2000);
  for (const Held& held : all) EXPECT_FALSE(ebb_arena_contains(exclusive, held.bytes));
  free_all(&all);
  ebb_heap_t* one = ebb_heap_new_in(exclusive);
  ebb_heap_t* two = ebb_heap_new_in(exclusive);
  EXPECT_TRUE(ebb_arena_contains(exclusive, ebb_heap_malloc(one, 100)));
  EXPECT_TRUE(ebb_arena_contains(exclusive, ebb_heap_malloc(two, 100)));
  // The arena is full: the heap has no more, others have.
  while (ebb_heap_malloc(one, 60000) != nullptr) {
  }
  errno = 0;
  EXPECT_EQ(ebb_heap_malloc(two, 60000), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* elsewhere = ebb_malloc(60000);
  EXPECT_NE(elsewhere, nullptr);
  ebb_free(elsewhere);
  ASSERT_TRUE(ebb_heap_destroy(one));
  EXPECT_NE(ebb_heap_malloc(two, 60000), nullptr);
  ASSERT_TRUE(ebb_heap_destroy(two));
  ASSERT_TRUE(ebb_arena_release(exclusive));
}

// What lives on after a delete is in the arena still, which therefore can't be released.
TEST(Arenas, StayWhileBlocksAreThere) {
  ebb_arena_t arena;
  ASSERT_TRUE(ebb_arena_reserve(4 * MiB, EBB_ARENA_EXCLUSIVE, &arena));
  ebb_heap_t* heap = ebb_heap_new_in(arena);
  std::vector<Held> all = hold_many(heap, 100);
  ASSERT_TRUE(ebb_heap_delete(heap));
  EXPECT_FALSE(ebb_arena_release(arena));
  EXPECT_EQ(errno, EBUSY);
  expect_intact(all);
  free_all(&all);
  ebb_collect(false);
  EXPECT_TRUE(ebb_arena_release(arena));
}

TEST(Arenas, RefuseWhatMakesNoSense) {
  Mapping mapping(4 * MiB, 0);
  ebb_arena_t arena, again;
  char* start = mapping.start();
  auto refused = [&](void* where, size_t bytes, unsigned flags) {
    errno = 0;
    return !ebb_arena_adopt(where, bytes, flags, &again) && errno == EINVAL;
  };
  EXPECT_TRUE(refused(start + 100, 2 * MiB, EBB_ARENA_COMMITTED));
  EXPECT_TRUE(refused(start, 2 * MiB + 100, EBB_ARENA_COMMITTED));
  EXPECT_TRUE(refused(start, MiB - 4 * KiB, EBB_ARENA_COMMITTED));
  EXPECT_TRUE(refused(nullptr, 2 * MiB, EBB_ARENA_COMMITTED));
  EXPECT_TRUE(refused(start, SIZE_MAX & ~size_t{4095}, EBB_ARENA_COMMITTED));
  EXPECT_TRUE(refused(start, 2 * MiB, 1u << 9));
  ASSERT_TRUE(ebb_arena_adopt(start, 2 * MiB, EBB_ARENA_COMMITTED, &arena));
  EXPECT_TRUE(refused(start, 2 * MiB, EBB_ARENA_COMMITTED));
  EXPECT_TRUE(refused(start + MiB, 2 * MiB, EBB_ARENA_COMMITTED));
  void* block = ebb_aligned_alloc(4096, 4 * MiB);
  EXPECT_TRUE(refused(block, 4 * MiB, EBB_ARENA_COMMITTED)) << "it is Ebb's already";
  ebb_free(block);
  ASSERT_TRUE(ebb_arena_adopt(start + 2 * MiB, 2 * MiB, EBB_ARENA_COMMITTED, &again)) << "a neighbour";
  ASSERT_TRUE(ebb_arena_release(again));
  ASSERT_TRUE(ebb_arena_release(arena));
  EXPECT_EQ(ebb_arena_area(arena, nullptr), nullptr);
  errno = 0;
  EXPECT_FALSE(ebb_arena_reserve(SIZE_MAX / 4, 0, &arena));
  EXPECT_EQ(errno, ENOMEM);
}

// Arenas outside the cage come and go while other threads free blocks of theirs and look pointers up.
TEST(Arenas, ComeAndGoWhileOthersAreUsed) {
  Mapping lasting(4 * MiB, 4 * KiB), passing(2 * MiB, 12 * KiB);
  ebb_arena_t arena;
  ASSERT_TRUE(ebb_arena_adopt(lasting.start(), lasting.bytes(), EBB_ARENA_COMMITTED | EBB_ARENA_EXCLUSIVE, &arena));
  ebb_heap_t* heap = ebb_heap_new_in(arena);
  std::atomic<bool> stop{false};
  std::thread user([&] {
    for (size_t i = 0; !stop; ++i) {
      Held held = hold(heap, 16 + i % 2000, i);
      ASSERT_EQ(ebb_heap_of(held.bytes), heap);
      ASSERT_TRUE(held.is_intact());
      ebb_free(held.bytes);
    }
  });
  for (int i = 0; i < 300; ++i) {
    ebb_arena_t other;
    ASSERT_TRUE(ebb_arena_adopt(passing.start(), passing.bytes(), EBB_ARENA_COMMITTED | EBB_ARENA_EXCLUSIVE, &other));
    ebb_heap_t* short_lived = ebb_heap_new_in(other);
    ASSERT_NE(ebb_heap_malloc(short_lived, 500), nullptr);
    ASSERT_TRUE(ebb_heap_destroy(short_lived));
    ASSERT_TRUE(ebb_arena_release(other));
  }
  stop = true;
  user.join();
  ASSERT_TRUE(ebb_heap_destroy(heap));
  ASSERT_TRUE(ebb_arena_release(arena));
}

TEST(Arenas, ReservedOnesReturnTheirMemory) {
  ebb_arena_t arena;
  size_t before = span_bytes_in_use();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(ebb_arena_reserve(16 * MiB, EBB_ARENA_EXCLUSIVE, &arena));
    size_t size;
    char* area = static_cast<char*>(ebb_arena_area(arena, &size));
    EXPECT_GE(size, 16 * MiB);
    ebb_heap_t* heap = ebb_heap_new_in(arena);
    for (size_t i = 0; i < 10000; ++i) hold(heap, 800, i);
    EXPECT_GT(os::resident_bytes(area, size), 7 * MiB);
    ASSERT_TRUE(ebb_heap_destroy(heap));
    ASSERT_TRUE(ebb_arena_release(arena));
    EXPECT_LT(os::resident_bytes(area, size), 64 * KiB);
  }
  EXPECT_LE(span_bytes_in_use(), before + 2 * kSliceBytes);  // metadata is kept
}

}  // namespace
}  // namespace ebb::test
