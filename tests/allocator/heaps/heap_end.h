// Ends heaps in both ways and checks that nothing stays behind.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "arena/cage.h"
#include "heaps/contents.h"
#include "page/remote.h"

namespace ebb::test {

inline Page* page_of(const void* p) { return page_head(find_slice(p)); }

inline bool is_ownerless(const Page* page) { return (page->remote.load() & remote::kOwnerless) != 0; }

// What all threads together have in use must be the same before and after; metadata is kept.
class HeapEnd : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ebb_heap_destroy(ebb_heap_new());
    ebb_collect(false);
    before_ = block_bytes();
  }
  void TearDown() override {
    // The scavenger may have a page in hand that has become empty: then it gives it back.
    for (int tries = 0; tries < 1000 && block_bytes() != before_; ++tries) ebb_collect(true);
    EXPECT_EQ(block_bytes(), before_);
  }

  // Ends the heap as the parameter says; blocks that must live on then are freed by the caller.
  static bool deletes() { return GetParam(); }
  static bool end(ebb_heap_t* heap) { return deletes() ? ebb_heap_delete(heap) : ebb_heap_destroy(heap); }
  static void check_and_free(std::vector<Held>* all) {
    if (!deletes()) return all->clear();
    expect_intact(*all);
    for (const Held& held : *all) EXPECT_EQ(ebb_heap_of(held.bytes), ebb_heap_main());
    free_all(all);
  }

  static size_t block_bytes() {
    size_t bytes = 0;
    for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
      arena->for_each_used([&bytes](Slice* span) {
        if (span->kind == SliceKind::kPage || span->kind == SliceKind::kLarge) bytes += size_t{span->slices} << kSliceShift;
      });
    }
    return bytes;
  }

 private:
  size_t before_ = 0;
};

}  // namespace ebb::test
