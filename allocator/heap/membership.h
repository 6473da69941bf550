// Which heap a page or large block belongs to, and what each first-class heap has.
//
// Page::heap changes at one time only: when the heap is deleted, its spans move to the main heap of its
// sub-process one by one, each with the locks of both heaps held. Frees go on meanwhile, and one of them may just
// have claimed the page. So whoever needs a page's heap to change its lists follows the pointer, takes that heap's
// lock and looks again (lock_heap_of): as long as the lock is held, the page stays there, listed or not, and in
// the heap's list of spans. The heap that was left behind may be gone by then; its structure is still a Heap.
//
//   mover                                     claimer
//   lock(from), lock(to)                      heap = page->heap           either before or after the move
//   move the page from list to list           lock(heap)
//   page->heap = to                           page->heap == heap? ──no──▶ unlock, again
//   unlock(to), unlock(from)                  list, unlist or retire the page; unlock
//
// Thread safety: every function may be called by any thread; the caller of add, remove and move names the locks
// that it holds.
#pragma once

#include "heap/heap.h"
#include "page/page.h"

namespace ebb {

// Locks the heap that the page belongs to; it does until the caller unlocks.
Heap* lock_heap_of(const Page* page);

// Whether the page is in the main heap of the process, where it stays. Acquire: partner of the store that ends its
// move there, behind which the mover does not touch it.
inline bool in_main_heap(const Page* page) { return page->heap.load(std::memory_order_acquire) == &g_main_heap; }

// ---- the spans of a first-class heap, under its lock ----

inline void add_span_locked(FirstClassHeap* heap, Slice* span) {
  span->ring_prev = nullptr;
  span->ring_next = heap->spans;
  if (heap->spans != nullptr) heap->spans->ring_prev = span;
  heap->spans = span;
}

inline void remove_span_locked(FirstClassHeap* heap, Slice* span) {
  if (span->ring_next != nullptr) span->ring_next->ring_prev = span->ring_prev;
  (span->ring_prev != nullptr ? span->ring_prev->ring_next : heap->spans) = span->ring_next;
}

// ---- the lists of pages to allocate from, under the heap's lock ----

void list_page_locked(Heap* heap, Page* page, bool at_back);
void unlist_page_locked(Heap* heap, Page* page);

// ---- where a heap's spans come from ----

inline const SpanSource& source_of(const Heap* heap) {
  return EBB_LIKELY(heap->is_main()) ? kEverybodysSource : first_class(heap)->source;
}

// ---- limits ----

// Charges a heap for memory that is about to be handed out; false, and nothing is charged, when that would exceed
// its limit. The main heap has none. Uncharge when it is given back.
inline bool charge(Heap* any_heap, size_t bytes) {
  if (EBB_LIKELY(any_heap->is_main())) return true;
  FirstClassHeap* heap = first_class(any_heap);
  size_t charged = heap->charged_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (EBB_LIKELY(charged <= heap->limit_bytes.load(std::memory_order_relaxed))) return true;
  heap->charged_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}
inline void uncharge(Heap* heap, size_t bytes) {
  if (!heap->is_main()) first_class(heap)->charged_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

// What the span of a page or a large block is charged with.
inline size_t charge_of(const Page* page) {
  return page->kind == SliceKind::kLarge ? page->large.usable : size_t{page->carved} * page->block_bytes;
}

}  // namespace ebb
