// The C library's names in a program that links libebb.so: the same functions, and the older ones.
#include <dlfcn.h>
#include <ebb/ebb.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "api/errno_after.h"
#include "api/usable.h"

namespace {

using ebb_test::opaque;
using ebb_test::with_errno;

void* named(const char* name) {
  void* address = dlsym(RTLD_DEFAULT, name);
  EXPECT_NE(address, nullptr) << name;
  return address;
}

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

TEST(LibcNamesTest, AreTheEbbFunctionsThemselves) {
  const char* const kSame[][2] = {
      {"malloc", "ebb_malloc"},
      {"calloc", "ebb_calloc"},
      {"realloc", "ebb_realloc"},
      {"reallocarray", "ebb_reallocarray"},
      {"aligned_alloc", "ebb_aligned_alloc"},
      {"posix_memalign", "ebb_posix_memalign"},
      {"free", "ebb_free"},
      {"free_sized", "ebb_free_sized"},
      {"free_aligned_sized", "ebb_free_aligned_sized"},
      {"cfree", "ebb_free"},
      {"malloc_usable_size", "ebb_usable_size"},
      {"__libc_malloc", "ebb_malloc"},
      {"__libc_calloc", "ebb_calloc"},
      {"__libc_realloc", "ebb_realloc"},
      {"__libc_reallocarray", "ebb_reallocarray"},
      {"__libc_free", "ebb_free"},
      {"__posix_memalign", "ebb_posix_memalign"},
      {"__libc_memalign", "memalign"},
      {"__libc_valloc", "valloc"},
      {"__libc_pvalloc", "pvalloc"},
      {"__libc_mallinfo", "mallinfo"},
      {"__libc_mallopt", "mallopt"},
  };
  for (const auto& [libc_name, name] : kSame) EXPECT_EQ(named(libc_name), named(name)) << libc_name;
}

TEST(LibcNamesTest, WhatTheLibcAllocatesIsEbbs) {
  char* copy = strdup("a string");
  EXPECT_TRUE(ebb_test::is_usable_as_promised(copy, 9));
  ebb_free(copy);
  char* path = realpath("/", nullptr);
  EXPECT_GE(ebb_usable_size(path), 2u);
  free(path);
}

TEST(MemalignTest, RoundsAnyAlignmentUpAsGlibc) {
  const size_t kAsked[][2] = {{0, 16}, {1, 16}, {3, 16}, {24, 32}, {48, 64}, {4097, 8192}, {65536, 65536}};
  for (auto [alignment, got] : kAsked) {
    void* p = memalign(opaque(alignment), 100);
    ASSERT_NE(p, nullptr) << alignment;
    EXPECT_EQ(number(p) % got, 0u) << alignment;
    EXPECT_GE(malloc_usable_size(p), 100u);
    free(p);
  }
}

TEST(MemalignTest, RefusesWhatItCannotRoundOrServe) {
  using Result = std::pair<void*, int>;
  auto ask = [](size_t alignment, size_t size) {
    return with_errno(0, [=] { return memalign(opaque(alignment), opaque(size)); });
  };
  EXPECT_EQ(ask(SIZE_MAX, 10), (Result{nullptr, EINVAL}));
  EXPECT_EQ(ask(SIZE_MAX / 2 + 2, 10), (Result{nullptr, EINVAL}));
  EXPECT_EQ(ask(SIZE_MAX / 2 + 1, 10), (Result{nullptr, ENOMEM}));
  for (size_t size : {size_t{PTRDIFF_MAX} + 1, SIZE_MAX - 8192, SIZE_MAX - 1, SIZE_MAX}) {
    EXPECT_EQ(ask(64, size), (Result{nullptr, ENOMEM})) << size;
  }
}

TEST(VallocTest, GivesOsPages) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (size_t size : {size_t{0}, size_t{1}, page - 1, page, page + 1, 10 * page, 1000 * page + 1}) {
    void* p = valloc(size);
    EXPECT_EQ(number(p) % page, 0u);
    EXPECT_GE(malloc_usable_size(p), size);
    free(p);
    p = pvalloc(size);
    EXPECT_EQ(number(p) % page, 0u);
    EXPECT_GE(malloc_usable_size(p), std::max<size_t>(size, 1));
    EXPECT_GE(malloc_usable_size(p), page) << "pvalloc gives whole pages";
    free(p);
  }
}

TEST(VallocTest, RefusesSizesThatWouldWrap) {
  using Result = std::pair<void*, int>;
  const size_t kMost{PTRDIFF_MAX};
  for (size_t size : {kMost, kMost + 1, SIZE_MAX - 4096, SIZE_MAX - 4095, SIZE_MAX - 1, SIZE_MAX}) {
    EXPECT_EQ(with_errno(0, [=] { return valloc(opaque(size)); }), (Result{nullptr, ENOMEM})) << size;
    EXPECT_EQ(with_errno(0, [=] { return pvalloc(opaque(size)); }), (Result{nullptr, ENOMEM})) << size;
  }
}

}  // namespace
