// The slow half of malloc. In order of cost: blocks that came back to the active page, freed by its own thread
// or by others; blocks in its holes; blocks not carved yet; then another page: the spare one, one that nobody
// owns, a new one. Warm memory before cold, and no OS page is touched before it is needed.
#include "heap/refill.h"

#include "arena/cage.h"
#include "base/bits.h"
#include "heap/heap.h"
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

// Gets blocks of a page the thread owns onto page->free; false when it is full.
bool gather(Page* page, bool* fresh) {
  if (page->free == nullptr) page_fold_remote(page);
  if (page->free != nullptr) {
    if (is_short_batch(page)) page_carve(page, carve_quota(page));
    return true;
  }
  if (page->hole_blocks != 0) {
    page_fill_hole(page);
    return true;
  }
  if (page->carved == page->capacity) return false;
  if (fresh != nullptr) *fresh = (page->flags & kFlagZero) != 0;
  page_carve(page, carve_quota(page));
  return true;
}

Page* new_page(ThreadHeap* heap, size_t cls) {
  bool zero;
  Slice* span = take_span({class_slices(cls)}, kSliceBytes, &zero);
  if (span == nullptr) return nullptr;
  count(Counter::k_pages_made);
  return page_make(span, cls, heap->heap, zero);
}

}  // namespace

bool refill(ThreadHeap* heap, size_t cls, bool* fresh) {
  if (fresh != nullptr) *fresh = false;
  Page* page = heap->active[cls];
  while (page == nullptr || !gather(page, fresh)) {
    if (page != nullptr) {
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
      if (page == nullptr) return false;
      page->punched_live = kNeverPunched;
      page->flags &= static_cast<uint8_t>(~kFlagSparse);
      page->owner.store(heap->thread->id(), std::memory_order_relaxed);
    }
    heap->active[cls] = page;
  }
  heap->free[cls] = page_take_list(page);
  return true;
}

}  // namespace ebb
