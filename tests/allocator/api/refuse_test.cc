// Requests that can't be served: what is returned, what errno says, and that nothing else happened.
#include <ebb/ebb.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "api/errno_after.h"

namespace {

using ebb_test::errno_after;
using ebb_test::opaque;
using ebb_test::with_errno;

const size_t kTooLarge[] = {size_t{PTRDIFF_MAX},    size_t{PTRDIFF_MAX} + 1, SIZE_MAX - (64 << 20), SIZE_MAX - 65536,
                            SIZE_MAX - 4096 - 4096, SIZE_MAX - 4096,         SIZE_MAX - 16,         SIZE_MAX};

using Result = std::pair<void*, int>;
const Result kOutOfMemory{nullptr, ENOMEM};
const Result kInvalid{nullptr, EINVAL};

// A request that keeps its result from the compiler's reasoning on sizes.
template <class Call>
Result ask(Call call) {
  return with_errno(0, [&]() -> void* { return call(); });
}

TEST(RefuseTest, SizesThatNoObjectCanHave) {
  for (size_t size : kTooLarge) {
    size = opaque(size);
    EXPECT_EQ(ask([=] { return ebb_malloc(size); }), kOutOfMemory) << size;
    EXPECT_EQ(ask([=] { return ebb_calloc(1, size); }), kOutOfMemory) << size;
    EXPECT_EQ(ask([=] { return ebb_calloc(size, 1); }), kOutOfMemory) << size;
    EXPECT_EQ(ask([=] { return ebb_realloc(nullptr, size); }), kOutOfMemory) << size;
    EXPECT_EQ(ask([=] { return ebb_reallocarray(nullptr, size, 1); }), kOutOfMemory) << size;
    for (size_t alignment : {8, 64, 4096, 1 << 20}) {
      EXPECT_EQ(ask([=] { return ebb_aligned_alloc(alignment, size); }), kOutOfMemory) << size << " " << alignment;
    }
  }
}

TEST(RefuseTest, AlignmentsLargerThanTheAddressSpace) {
  for (int shift = 47; shift < 64; ++shift) {
    size_t alignment = opaque(size_t{1} << shift);
    EXPECT_EQ(ask([=] { return ebb_aligned_alloc(alignment, 100); }), kOutOfMemory) << shift;
    void* out = &out;
    EXPECT_EQ(ebb_posix_memalign(&out, alignment, 100), ENOMEM) << shift;
    EXPECT_EQ(out, &out) << "the result is untouched on failure";
  }
}

// As above, without relying on how a product wraps: every pair has a product of 2^64 or more.
TEST(RefuseTest, ProductsThatOverflow) {
  const std::pair<size_t, size_t> kPairs[] = {
      {SIZE_MAX, 2},
      {2, SIZE_MAX},
      {size_t{1} << 32, size_t{1} << 32},
      {SIZE_MAX / 2 + 1, 2},
      {(size_t{1} << 63) / 3 + 1, 6},
  };
  for (const std::pair<size_t, size_t>& pair : kPairs) {
    const size_t count = opaque(pair.first), size = pair.second;
    EXPECT_EQ(ask([=] { return ebb_calloc(count, size); }), kOutOfMemory) << count << " * " << size;
    EXPECT_EQ(ask([=] { return ebb_reallocarray(nullptr, count, size); }), kOutOfMemory) << count;
  }
}

// Small, medium and large blocks; every way to fail.
TEST(RefuseTest, AFailedResizeLeavesTheBlock) {
  for (size_t old_size : {40, 5000, 300000, 5000000}) {
    unsigned char* p = static_cast<unsigned char*>(ebb_malloc(old_size));
    size_t usable = ebb_usable_size(p);
    memset(p, 0x5A, usable);
    for (size_t size : kTooLarge) {
      size = opaque(size);
      EXPECT_EQ(ask([=] { return ebb_realloc(p, size); }), kOutOfMemory) << size;
      EXPECT_EQ(ask([=] { return ebb_reallocarray(p, size, 1); }), kOutOfMemory) << size;
      EXPECT_EQ(ask([=] { return ebb_reallocarray(p, size, 3); }), kOutOfMemory) << size;
      EXPECT_EQ(ask([=] { return ebb_aligned_realloc(p, 64, size); }), kOutOfMemory) << size;
    }
    EXPECT_EQ(ask([=] { return ebb_aligned_realloc(p, 48, 100); }), kInvalid);
    EXPECT_EQ(ebb_usable_size(p), usable);
    for (size_t i = 0; i < usable; ++i) ASSERT_EQ(p[i], 0x5A) << i;
    ebb_free(p);
  }
}

TEST(RefuseTest, AlignmentsThatAreNoPowerOfTwo) {
  for (size_t alignment : {size_t{0}, size_t{3}, size_t{24}, size_t{48}, size_t{4097}, SIZE_MAX}) {
    EXPECT_EQ(ask([=] { return ebb_aligned_alloc(alignment, 100); }), kInvalid) << alignment;
    EXPECT_EQ(ask([=] { return ebb_aligned_realloc(nullptr, alignment, 100); }), kInvalid) << alignment;
  }
}

TEST(RefuseTest, PosixMemalignReturnsItsErrorsAndKeepsErrno) {
  void* const kBefore = &errno;
  void* out = kBefore;
  auto ask_for = [&out](size_t alignment, size_t size) {
    return with_errno(EXDEV, [&] { return ebb_posix_memalign(&out, alignment, size); });
  };
  const std::pair<int, int> kNotThis{EINVAL, EXDEV}, kNoMemory{ENOMEM, EXDEV}, kFine{0, EXDEV};
  for (size_t alignment : {0, 1, 2, 4, 12, 24, 100}) EXPECT_EQ(ask_for(alignment, 10), kNotThis) << alignment;
  for (size_t size : kTooLarge) EXPECT_EQ(ask_for(64, opaque(size)), kNoMemory) << size;
  EXPECT_EQ(out, kBefore);
  for (size_t size : {0, 10, 5000, 1000000}) {
    EXPECT_EQ(ask_for(sizeof(void*), size), kFine);
    EXPECT_NE(out, kBefore);
    ebb_free(out);
    out = kBefore;
  }
}

TEST(RefuseTest, GoodSizeOfWhatIsRefusedDoesNotWrap) {
  for (size_t size : kTooLarge) EXPECT_GE(ebb_good_size(size), size);
}

}  // namespace
