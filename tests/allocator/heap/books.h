// What the allocator's books say, for tests that want nothing to stay behind.
#pragma once

#include <gtest/gtest.h>

#include "arena/cage.h"
#include "ebb/ebb.h"

namespace ebb::test {

inline ebb_stats_t books() {
  ebb_stats_t stats;
  EXPECT_TRUE(ebb_stats_get(&stats, sizeof(stats)));
  return stats;
}

// Pages and large blocks after everything that can be given up was.
inline size_t spans_after_collect() {
  ebb_collect(true);
  ebb_stats_t stats = books();
  return stats.page_count + stats.large_count;
}

inline bool arenas_are_valid() {
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    if (!arena->is_valid()) return false;
  }
  return true;
}

}  // namespace ebb::test
