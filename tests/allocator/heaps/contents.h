// Blocks that know what they should hold, so that one that was given out twice, or ended with another heap, shows.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "arena/arena_list.h"
#include "ebb/ebb.h"

namespace ebb::test {

struct Held {
  unsigned char* bytes;
  size_t size;
  unsigned char value;

  bool is_intact() const {
    for (size_t i = 0; i < size; ++i) {
      if (bytes[i] != value) return false;
    }
    return true;
  }
};

// Null bytes when the heap has no memory.
inline Held hold(ebb_heap_t* heap, size_t size, size_t number) {
  Held held{static_cast<unsigned char*>(ebb_heap_malloc(heap, size)), size, static_cast<unsigned char>(number * 37 + 11)};
  if (held.bytes != nullptr) memset(held.bytes, held.value, size);
  return held;
}

// `count` blocks of sizes all over: small, medium, and now and then a large one.
inline std::vector<Held> hold_many(ebb_heap_t* heap, size_t count, size_t seed = 0) {
  std::vector<Held> all;
  for (size_t i = 0; i < count; ++i) {
    size_t mixed = (i + seed) * 2654435761u;
    size_t size = i % 97 == 96 ? 70000 + mixed % 100000 : i % 13 == 12 ? 3000 + mixed % 30000 : 16 + mixed % 1000;
    all.push_back(hold(heap, size, i + seed));
  }
  return all;
}

inline void expect_intact(const std::vector<Held>& all) {
  for (const Held& held : all) {
    ASSERT_NE(held.bytes, nullptr);
    ASSERT_TRUE(held.is_intact()) << "a block of " << held.size << " bytes at " << static_cast<void*>(held.bytes);
  }
}

inline void free_all(std::vector<Held>* all) {
  for (const Held& held : *all) ebb_free(held.bytes);
  all->clear();
}

inline ebb_heap_stats_t stats_of(ebb_heap_t* heap) {
  ebb_heap_stats_t stats{};
  EXPECT_TRUE(ebb_heap_stats_get(heap, &stats, sizeof(stats)));
  return stats;
}

// Bytes of spans in use in all arenas, the allocator's own structures included.
inline size_t span_bytes_in_use() {
  size_t bytes = 0;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    arena->for_each_used([&bytes](Slice* span) {
      if (span->kind != SliceKind::kArena) bytes += size_t{span->slices} << kSliceShift;
    });
  }
  return bytes;
}

}  // namespace ebb::test
