// Blocks of a given heap: what heap/alloc.h does for the thread's current one. Any thread.
//
//   heap_allocate_listed ─▶ pop of the class's list, for a heap's first thread
//   heap_allocate_slow ─▶ the same for others; the blocks that the part's active page got back
//             ├─▶ take_block ─▶ part_get, refill
//             └─▶ take_large
#pragma once

#include "heap/heap.h"
#include "heap/parts.h"
#include "page/live_blocks.h"

namespace ebb {

EBB_HIDDEN EBB_NOINLINE void* heap_allocate_slow(Heap* heap, size_t size);

// The pop alone, for the thread whose part is in the heap itself; null: ask heap_allocate_slow. No other thread's
// home is a heap that has ended, or the main heap.
EBB_INLINE void* heap_allocate_listed(Heap* heap, size_t size) {
  if (EBB_UNLIKELY(size > kTableMost || heap->home_owner.load(std::memory_order_relaxed) != tls_owner)) return nullptr;
  ThreadHeap* part = &first_class(heap)->home;
  Block** list = &part->free[part->classes.entry[(size + kBlockAlign - 1) / kBlockAlign]];
  Block* block = *list;
  if (EBB_UNLIKELY(block == nullptr)) return nullptr;
  *list = block->next;
  return hand_out(block);
}

// As the functions of heap/alloc.h; null means out of memory, or the heap's limit.
void* heap_allocate_zeroed(Heap* heap, size_t size);
void* heap_allocate_aligned(Heap* heap, size_t alignment, size_t size);  // alignment: a power of two
void* heap_reallocate(Heap* heap, void* p, size_t size);                 // p: a block of `heap`; size not 0

// The heap of the page or large block that p points into; null when there is none of Ebb's.
Heap* heap_holding(const void* p);

}  // namespace ebb
