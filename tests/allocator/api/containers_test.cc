// ebb.hpp under the containers of the standard library.
#include <gtest/gtest.h>
#include <ebb/ebb.hpp>

#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "api/errno_after.h"

namespace {

size_t live_blocks() {
  ebb_stats_t stats;
  EXPECT_TRUE(ebb_stats_get(&stats, sizeof stats));
  return stats.live_blocks;
}

using String = std::basic_string<char, std::char_traits<char>, ebb::allocator<char>>;

TEST(AllocatorTest, ServesContainersAndGetsEverythingBack) {
  size_t before = live_blocks();
  {
    std::vector<int, ebb::allocator<int>> vector;
    std::list<long, ebb::allocator<long>> list;
    std::deque<char, ebb::allocator<char>> deque;
    std::map<int, String, std::less<int>, ebb::allocator<std::pair<const int, String>>> map;
    std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, ebb::allocator<std::pair<const int, int>>> hash;
    for (int i = 0; i < 1000; ++i) {
      vector.push_back(i);
      list.push_back(i);
      deque.push_front(static_cast<char>(i));
      map.emplace(i, String(static_cast<size_t>(i), 'x'));
      hash[i] = -i;
    }
    EXPECT_GT(live_blocks(), before + 2000);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(vector[static_cast<size_t>(i)], i);
      ASSERT_EQ(map.at(i).size(), static_cast<size_t>(i));
      ASSERT_EQ(hash.at(i), -i);
    }
    EXPECT_EQ(list.size(), 1000u);
    EXPECT_EQ(deque.size(), 1000u);
    std::vector<int, ebb::allocator<int>> moved = std::move(vector);
    EXPECT_EQ(moved[999], 999);
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST(AllocatorTest, AllObjectsAreEqual) {
  static_assert(std::allocator_traits<ebb::allocator<int>>::is_always_equal::value);
  static_assert(std::is_empty_v<ebb::allocator<int>>);
  static_assert(std::is_same_v<std::allocator_traits<ebb::allocator<int>>::rebind_alloc<char>, ebb::allocator<char>>);
  ebb::allocator<int> numbers;
  ebb::allocator<double> other(numbers);
  EXPECT_TRUE(numbers == other);
  EXPECT_FALSE(numbers != ebb::allocator<int>());
}

struct alignas(256) Aligned {
  char bytes[300];
};

TEST(AllocatorTest, KeepsOverAlignedTypesAligned) {
  std::vector<Aligned, ebb::allocator<Aligned>> vector;
  for (size_t i = 0; i < 20; ++i) {
    vector.emplace_back();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(vector.data()) % 256, 0u);
  }
}

TEST(AllocatorTest, ThrowsWhatTheStandardSays) {
  ebb::allocator<long> allocator;
  EXPECT_THROW(allocator.deallocate(allocator.allocate(ebb_test::opaque(SIZE_MAX / 2)), 1), std::bad_array_new_length);
  size_t most = ebb_test::opaque(std::numeric_limits<size_t>::max() / sizeof(long));
  EXPECT_THROW(allocator.deallocate(allocator.allocate(most), most), std::bad_alloc);
}

TEST(AllocatorTest, MemoryMayBeGivenBackByAnotherThread) {
  size_t before = live_blocks();
  auto* vector = new std::vector<int, ebb::allocator<int>>(1000, 7);
  std::thread([vector] { delete vector; }).join();
  EXPECT_EQ(live_blocks(), before);
}

TEST(MemoryResourceTest, ServesPolymorphicContainers) {
  size_t before = live_blocks();
  {
    std::pmr::vector<int> vector(ebb::resource());
    std::pmr::map<int, std::pmr::string> map(ebb::resource());
    for (int i = 0; i < 1000; ++i) {
      vector.push_back(i);
      map.emplace(i, std::pmr::string(static_cast<size_t>(i), 'y'));
    }
    EXPECT_GT(live_blocks(), before + 1000);
    EXPECT_EQ(map.at(999).size(), 999u);
    // The map hands its resource on to what it holds.
    EXPECT_EQ(map.at(999).get_allocator().resource(), ebb::resource());
  }
  EXPECT_EQ(live_blocks(), before);
}

TEST(MemoryResourceTest, AlignsAndThrows) {
  for (size_t alignment = 1; alignment <= 1 << 16; alignment *= 2) {
    void* p = ebb::resource()->allocate(100, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u);
    ebb::resource()->deallocate(p, 100, alignment);
  }
  size_t too_much = ebb_test::opaque(SIZE_MAX - 100);
  EXPECT_THROW(ebb::resource()->deallocate(ebb::resource()->allocate(too_much), too_much), std::bad_alloc);
}

TEST(MemoryResourceTest, IsEqualToItsKindAlone) {
  ebb::memory_resource another;
  EXPECT_TRUE(ebb::resource()->is_equal(another));
  EXPECT_TRUE(*ebb::resource() == another);
  EXPECT_FALSE(ebb::resource()->is_equal(*std::pmr::new_delete_resource()));
  EXPECT_FALSE(std::pmr::new_delete_resource()->is_equal(*ebb::resource()));
}

}  // namespace
