// The slow half of freeing: pages of other threads and of nobody, large blocks, pages that became empty.
#include "base/test_point.h"
#include "heap/alloc.h"
#include "heap/handover.h"
#include "heap/large.h"
#include "heap/misuse.h"
#include "heap/parts.h"
#include "heap/shared_pages.h"
#include "page/remote.h"

namespace ebb {
namespace {

// Keeps a claimed page in reserve, if the thread allocates from its class and has no other there. One that
// only frees keeps none: what it frees is for others to find.
bool keep_as_spare(Thread* thread, Page* page) {
  ThreadHeap* heap = part_find(thread, page->heap.load(std::memory_order_relaxed));
  size_t cls = page->cls;
  if (heap == nullptr || heap->active[cls] == nullptr || heap->spare[cls] != nullptr) return false;
  // The page may have moved to another heap before the look-up; from here on the gate keeps it in this one.
  if (page->heap.load(std::memory_order_relaxed) != heap->heap) return false;
  // One that is mostly in use is left to whoever needs blocks first, an empty one goes back to its arena.
  uint32_t live = page->countdown - remote::count_of(page->remote.load(std::memory_order_relaxed));
  if (live == 0 || live > page->capacity / 2) return false;
  page_fold_remote(page);
  page_unlist(page);
  page->punched_live = kNeverPunched;
  page->flags &= static_cast<uint8_t>(~kFlagSparse);
  page->owner.store(thread->id(), std::memory_order_relaxed);
  heap->spare[cls] = page;
  return true;
}

// This thread's push claimed an ownerless page: it is empty, or has enough free blocks to be of use. A parked
// thread stays parked.
EBB_NOINLINE void release_claimed(Page* page) {
  Thread* thread = thread_self_if_any();
  if (thread != nullptr && thread->gate.load(std::memory_order_relaxed) == kRunning) {
    Gate gate(thread);
    if (!gate.is_open() || !keep_as_spare(thread, page)) page_release(page);
  } else {
    page_release(page);
  }
  run_deferred();
}

// The last block of a page that a thread was left with (Thread::handover) came back.
EBB_COLD void release_left(Page* page) {
  EBB_TEST_POINT("page.last_back");
  // Its owner may have given it up by now: then this is another's page or none, and nothing is found.
  handover_note_empty(page->owner.load(std::memory_order_relaxed));
  run_deferred();
}

EBB_INLINE void push_local(Page* page, Block* block) {
  if (!may_release(page, block)) return;
  block->next = page->free;
  compiler_barrier();  // as in release()
  page->free = block;
  if (page_count_down(page)) release_emptied(page);
}

}  // namespace

void release_foreign(void* p, Page* page) {
  if (page->kind == SliceKind::kPageInterior) {
    page = as_page(slice_before(page, page->back));
    if (EBB_LIKELY(page->owner.load(std::memory_order_relaxed) == tls_owner)) {
      return push_local(page, static_cast<Block*>(p));
    }
  }
  if (EBB_UNLIKELY(page->kind != SliceKind::kPage)) {
    if (page->kind == SliceKind::kLarge) return large_release(page, p);
    return report_invalid_pointer("free", p);
  }
  if (!may_release_remotely(page, p)) return;
  remote::Pushed pushed = remote::push(page, static_cast<Block*>(p));
  if (EBB_UNLIKELY(pushed != remote::kPushed)) pushed == remote::kClaimed ? release_claimed(page) : release_left(page);
}

void release_outside(void* p) {
  if (p == nullptr) return;
  Slice* slice = find_slice(p);
  if (EBB_UNLIKELY(slice == nullptr)) return report_invalid_pointer("free", p);
  Page* page = page_head(slice);
  if (page->owner.load(std::memory_order_relaxed) == tls_owner) return push_local(page, static_cast<Block*>(p));
  release_foreign(p, page);
}

// The last block of a page that this thread owns came back. The active page stays: the next refill hands its
// blocks out again.
void release_emptied(Page* page) {
  Thread* thread = thread_self_if_any();
  {
    Gate gate(thread);
    if (!gate.is_open()) return;
    // Entering may have given it up, as a page of a deleted heap.
    if (page->owner.load(std::memory_order_relaxed) != thread->id()) return;
    ThreadHeap* heap = part_find(thread, page->heap.load(std::memory_order_relaxed));
    if (heap == nullptr || heap->spare[page->cls] != page) return;
    heap->spare[page->cls] = nullptr;
    page_retire(page);
  }
  run_deferred();
}

}  // namespace ebb
