// Allocating and freeing: the fast paths, inline, and the slow paths they fall into. Any thread.
//
//   allocate ─▶ pop of the class's list                          (13 instructions in libebb.so)
//      ├─▶ allocate_empty ─▶ the blocks that the active page got back
//      │      └─▶ allocate_more ─▶ refill: remotely freed blocks, the spare page, holes, uncarved blocks,
//      │                                   a page nobody owns, a new page
//      └─▶ allocate_slow    above the table's sizes: the class is computed, then as above
//             └─▶ large_allocate   a span of its own
//      While the heap profiler samples, allocate_more and take_large count (heap/sampling.h).
//   release ─▶ push to the page's own list                       (18 instructions)
//      ├─▶ release_emptied  the countdown reached zero
//      ├─▶ release_foreign  a further slice of this thread's page
//      │                    not this thread's page ─▶ remote::push ─▶ release_claimed
//      │                    a large block ─▶ large_release
//      └─▶ release_outside  outside the cage: NULL, adopted memory, or not Ebb's and reported
#pragma once

#include <cstddef>
#include <cstdint>

#include "arena/cage.h"
#include "base/compiler.h"
#include "heap/checked_release.h"
#include "heap/thread.h"
#include "page/live_blocks.h"
#include "page/page.h"

namespace ebb {

// ---- slow paths (heap/alloc.cc, heap/release.cc, heap/large.cc) ----

EBB_HIDDEN EBB_NOINLINE void* allocate_slow(size_t size);
// In this order: with the heap first, malloc would need a move to keep the block apart from it.
EBB_HIDDEN EBB_NOINLINE void* allocate_empty(size_t cls, ThreadHeap* heap);
EBB_HIDDEN EBB_NOINLINE void* allocate_zeroed_slow(size_t size);
EBB_HIDDEN EBB_NOINLINE void release_outside(void* p);
EBB_HIDDEN EBB_NOINLINE void release_foreign(void* p, Page* page);
EBB_HIDDEN EBB_NOINLINE void release_emptied(Page* page);

// A block of class `cls` from the calling thread's part of a heap; null `from`: of its current one. `fresh` (may be
// null) is set to whether the block was never used and reads as zero but for its link.
void* take_block(Heap* from, size_t cls, bool* fresh);
// A block with a span of its own; `zero` as in large_allocate, `caller` as in sample_begin (heap/sample_list.h).
void* take_large(Heap* heap, size_t size, size_t alignment, bool* zero, const void* caller);

// ---- fast paths ----

EBB_INLINE void* allocate(size_t size) {
  if (EBB_UNLIKELY(size > kTableMost)) return allocate_slow(size);
  // The lists are the thread's own; only the shared empty heap is constant, and its lists are never popped.
  ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
  size_t cls = heap->classes.entry[(size + kBlockAlign - 1) / kBlockAlign];
  Block* block = heap->free[cls];
  if (EBB_UNLIKELY(block == nullptr)) return allocate_empty(cls, heap);
  heap->free[cls] = block->next;
  return hand_out(block);
}

// The pop alone, null where allocate() takes a slow path: for operator new, which has to look at the result and
// would need a frame to do so behind a call.
EBB_INLINE void* allocate_listed(size_t size) {
  if (EBB_UNLIKELY(size > kTableMost)) return nullptr;
  ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
  Block** list = &heap->free[heap->classes.entry[(size + kBlockAlign - 1) / kBlockAlign]];
  Block* block = *list;
  if (EBB_UNLIKELY(block == nullptr)) return nullptr;
  *list = block->next;
  return hand_out(block);
}

EBB_INLINE void release(void* p) {
  uintptr_t offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(g_cage.base);
  if (EBB_UNLIKELY(offset >= g_cage.size)) return release_outside(p);
  Page* page = as_page(cage_slice(offset));
  if (EBB_UNLIKELY(page->owner.load(std::memory_order_relaxed) != tls_owner)) return release_foreign(p, page);
  if (!may_release(page, p)) return;  // debug and secure builds; nothing otherwise
  Block* block = static_cast<Block*>(p);
  block->next = page->free;
  compiler_barrier();  // a fork child must find the list well linked
  page->free = block;
  if (EBB_UNLIKELY(page_count_down(page))) release_emptied(page);
}

// A block of the class of an aligned request if the thread has one listed; null: ask allocate_aligned, which
// also knows the rarer cases, no bytes among them. Changes no errno.
EBB_INLINE void* allocate_aligned_listed(size_t alignment, size_t size) {
  // Where the request ends when rounded up to the alignment, less one: beyond every class for a size of 0.
  size_t last = (size - 1) | (alignment - 1);
  ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
  size_t cls;
  if (EBB_LIKELY(last < kTableMost)) {
    cls = heap->classes.entry[last / kBlockAlign + 1];
  } else {
    if (EBB_UNLIKELY(last >= kLargestBlock)) return nullptr;
    cls = medium_class_of(last + 1);
  }
  Block* block = heap->free[cls];
  if (EBB_UNLIKELY(block == nullptr)) return nullptr;
  heap->free[cls] = block->next;
  return hand_out(block);
}

// ---- further operations ----

// As the C functions of the same meaning; null means out of memory, never an invalid argument.
void* allocate_zeroed(size_t size);
void* allocate_aligned(size_t alignment, size_t size);             // alignment: a power of two
EBB_NOINLINE void* allocate_aligned_slow(size_t alignment, size_t size);  // none was listed
void* allocate_with_room(size_t size, size_t room);                // a large block with address space to grow into
void* reallocate(void* p, size_t size);                            // p not null, size not 0
void* reallocate_aligned(void* p, size_t alignment, size_t size);  // p not null
size_t usable_bytes(const void* p);                                // 0 for null
size_t good_bytes(size_t size);  // what usable_bytes of a block of `size` would be

}  // namespace ebb
