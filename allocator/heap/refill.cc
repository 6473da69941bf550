// The slow half of malloc. In order of cost: blocks that came back to the active page, freed by its own thread or by
// others; to the spare page, or to one that nobody owns; blocks in the active page's holes; blocks not carved yet; then
// another page. Warm memory before cold, and no OS page is touched before it is needed.
#include "heap/refill.h"

#include "arena/cage.h"
#include "base/bits.h"
#include "heap/heap.h"
#include "heap/membership.h"
#include "heap/shared_pages.h"
#include "heap/thread.h"
#include "os/os.h"
#include "page/page.h"
#include "page/remote.h"
#include "stats/counters.h"

namespace ebb {
namespace {

uint32_t carve_quota(const Page* page) {
  return max_of<uint32_t>(static_cast<uint32_t>(os::page_bytes() / page->block_bytes), 1);
}

// Carves an OS page's worth, less near the heap's limit; false when not a block is left of that.
bool carve_within_limit(Heap* heap, Page* page) {
  uint32_t blocks = min_of<uint32_t>(carve_quota(page), page->capacity - page->carved);
  while (!charge(heap, size_t{blocks} * page->block_bytes)) {
    if (blocks == 1) return false;
    blocks = 1;
  }
  page_carve(page, blocks);
  return true;
}

// Whether the page has blocks that came back, from its own thread or others.
EBB_INLINE bool has_returned(Page* page) {
  bool others_freed = remote::count_of(page->remote.load(std::memory_order_relaxed)) != 0;
  if (others_freed && (page->free == nullptr || is_short_batch(page))) page_fold_remote(page);
  return page->free != nullptr;
}

enum class Cold { kSome, kNone, kLimited };

// Gets blocks in holes or uncarved memory of a page that has no others onto page->free.
EBB_INLINE Cold take_cold(Heap* heap, Page* page, bool* fresh) {
  if (page->hole_blocks != 0) {
    page_fill_hole(page);
    return Cold::kSome;
  }
  if (page->carved == page->capacity) return Cold::kNone;
  if (!carve_within_limit(heap, page)) return Cold::kLimited;
  if (fresh != nullptr) *fresh = (page->flags & kFlagZero) != 0;
  return Cold::kSome;
}

EBB_INLINE Page* new_page(ThreadHeap* heap, size_t cls) {
  bool zero;
  Slice* span = take_span_from(source_of(heap->heap), {class_slices(cls)}, kSliceBytes, &zero);
  if (span == nullptr) return nullptr;
  count(Counter::k_pages_made);
  Page* page = page_make(span, cls, heap->heap, zero);
  if (EBB_UNLIKELY(!heap->heap->is_main())) {
    LockGuard guard(heap->heap->lock);
    add_span_locked(first_class(heap->heap), page);
    if (page->touched > 1) heap->has_stale_tails = true;
  }
  return page;
}

// Before a heap at its limit takes a page for another class: what its classes keep in reserve is given up, and
// empty pages with it. False when the next block would still be too much.
EBB_COLD bool make_room(ThreadHeap* heap, size_t cls) {
  FirstClassHeap* limited = first_class(heap->heap);
  auto has_room = [&] {
    return limited->charged_bytes.load(std::memory_order_relaxed) + class_bytes(cls) <=
           limited->limit_bytes.load(std::memory_order_relaxed);
  };
  if (has_room()) return true;
  thread_heap_release(heap, false);
  return has_room();
}

// The page is the thread's from here on.
EBB_INLINE void own(ThreadHeap* heap, Page* page) {
  page->punched_live = kNeverPunched;
  page->flags &= static_cast<uint8_t>(~kFlagSparse);
  page->owner.store(heap->thread->id(), std::memory_order_relaxed);
}

// Before the active page's untouched memory, blocks that came back to the spare page, or to one that nobody owns: the
// two pages change places. False when there are none, or hardly any.
EBB_INLINE bool take_turns(ThreadHeap* heap, size_t cls) {
  Page* active = heap->active[cls];
  Page* other = heap->spare[cls];
  if (active->countdown == 0) return false;  // an empty page is no reserve
  if (other != nullptr) {
    if (!has_returned(other) || is_short_batch(other)) return false;
  } else {
    other = page_adopt(heap->heap, cls);
    if (EBB_LIKELY(other == nullptr)) return false;
    own(heap, other);
  }
  heap->active[cls] = other;
  heap->spare[cls] = active;
  return true;
}

// Makes heap->active[cls] a page with blocks on its list.
EBB_INLINE Page* find_page(ThreadHeap* heap, size_t cls, bool* fresh) {
  if (fresh != nullptr) *fresh = false;
  bool reserve_given_up = false;
  for (;;) {
    Page* page = heap->active[cls];
    if (page != nullptr) {
      if (has_returned(page)) {
        if (is_short_batch(page)) carve_within_limit(heap->heap, page);
        break;
      }
      if (page->carved != page->capacity && take_turns(heap, cls)) continue;
      Cold cold = take_cold(heap->heap, page, fresh);
      if (EBB_LIKELY(cold == Cold::kSome)) break;
      if (cold == Cold::kLimited) {
        if (!make_room(heap, cls)) return nullptr;
        continue;
      }
      // Full: nobody's, so that whoever frees its blocks can make it available again.
      heap->active[cls] = nullptr;
      page_release(page);
    }
    page = heap->spare[cls];
    if (page != nullptr) {
      heap->spare[cls] = nullptr;
    } else {
      page = page_adopt(heap->heap, cls);
      if (page == nullptr) page = new_page(heap, cls);
      if (EBB_UNLIKELY(page == nullptr)) {
        // An arena of its own may be full of what the heap's classes keep in reserve.
        if (heap->heap->is_main() || reserve_given_up) return nullptr;
        reserve_given_up = true;
        thread_heap_release(heap, false);
        continue;
      }
      own(heap, page);
    }
    heap->active[cls] = page;
  }
  return heap->active[cls];
}

}  // namespace

bool refill(ThreadHeap* heap, size_t cls, bool* fresh) {
  Page* page = find_page(heap, cls, fresh);
  if (EBB_UNLIKELY(page == nullptr)) return false;
  heap->free[cls] = page_take_list(page);
  return true;
}

Page* refill_page(ThreadHeap* heap, size_t cls, bool* fresh) { return find_page(heap, cls, fresh); }

}  // namespace ebb
