// A page outside of any heap, whose owner is the test.
#pragma once

#include "../arena/arena_range.h"
#include "page/page.h"

namespace ebb::test {

class PageBench {
 public:
  explicit PageBench(size_t block_bytes) : range_(2 * kLongestSlices) {
    bool zero = false;
    size_t cls = class_of(block_bytes);
    Slice* span = range_.arena().take({class_slices(cls)}, kSliceBytes, &zero);
    page_ = page_make(span, cls, nullptr, zero);
  }

  Page* page() { return page_; }
  Block* block(uint32_t index) {
    return reinterpret_cast<Block*>(page_->start + size_t{index} * page_->block_bytes);
  }
  uint32_t index_of(const void* block) const {
    return static_cast<uint32_t>(static_cast<size_t>(static_cast<const char*>(block) - page_->start) / page_->block_bytes);
  }
  // The next free block, as malloc's slow path would get it; null when none is free now.
  Block* pop() {
    Block* block = page_->free;
    if (block == nullptr) return nullptr;
    page_->free = block->next;
    ++page_->countdown;
    return block;
  }
  // As the fast path of free.
  void push_local(Block* block) {
    block->next = page_->free;
    page_->free = block;
    --page_->countdown;
  }

 private:
  ArenaRange range_;
  Page* page_;
};

// Pretends a larger OS page while it lives.
class OsPageBytes {
 public:
  explicit OsPageBytes(size_t bytes) : before_(os::page_bytes()) { os::set_page_bytes_for_test(bytes); }
  ~OsPageBytes() { os::set_page_bytes_for_test(before_); }
  OsPageBytes(const OsPageBytes&) = delete;
  OsPageBytes& operator=(const OsPageBytes&) = delete;

 private:
  size_t before_;
};

}  // namespace ebb::test
