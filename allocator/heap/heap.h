// A heap: what its threads share. Each thread that allocates from a heap has a ThreadHeap for it
// (heap/thread_heap.h); the Heap holds the pages that no thread owns and that have free blocks.
//
// Thread safety: the lists are guarded by `lock`. A page enters or leaves a list only by the hand of its
// owner or claimer while it holds the lock.
//
// Invariants:
//  1. A page in `shared[c]` has class c, belongs to this heap, and has kFlagListed. It is ownerless, or
//     claimed by somebody who will release it or take it out.
//  2. An ownerless page that is not listed is full, or has fewer free blocks than the free that will claim
//     and list it waits for (release_threshold in heap/shared_pages.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/lock.h"
#include "page/page.h"

namespace ebb {

class Heap {
 public:
  constexpr explicit Heap(uint32_t heap_id) : lock(LockRank::kHeap), id(heap_id) {}

  Lock lock;
  uint32_t id;  // 0: the main heap
  // Pages to allocate from, by class: dense ones in front, those with holes at the back. Circular, linked by
  // Slice::next and prev; the pointer is the front. Written under the lock, read without it as a hint.
  std::atomic<Page*> shared[kClassCount] = {};

  bool is_main() const { return id == 0; }
};

EBB_HIDDEN extern Heap g_main_heap;

}  // namespace ebb
