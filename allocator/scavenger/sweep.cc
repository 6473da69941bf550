#include "scavenger/sweep.h"

#include "arena/arena_list.h"
#include "base/test_point.h"
#include "config/options.h"
#include "heap/handover.h"
#include "heap/heap.h"
#include "heap/heap_lifetime.h"
#include "heap/shared_pages.h"
#include "heap/thread.h"
#include "os/os.h"
#include "page/remote.h"
#include "stats/counters.h"

namespace ebb {
namespace {

enum class Sweep { kNothing, kStep, kLater };

bool is_due(const Thread* thread, uint64_t now_ns) {
  if (now_ns == kSweepAllNow) return true;
  if (thread->sweep_class != 0) return true;  // a sweep that the owner interrupted goes on
  uint64_t interval = static_cast<uint64_t>(option(Option::k_hole_interval_ms)) * 1000000u;
  return thread->swept_ns == 0 || now_ns - thread->swept_ns >= interval;
}

bool has_work(const Thread* thread) { return thread->touched.load(std::memory_order_relaxed) || thread->sweep_class != 0; }

// One class of one parked thread, or a part of it if the thread wants its heaps back. The gate is held in kSweeping for
// that long; the registry's lock keeps the thread from ending meanwhile.
void sweep_class_locked(Thread* thread, uint64_t now_ns) {
  EBB_TEST_POINT("sweep.step");
  // Before the first class, not behind the last: the owner may come back in between and use a class that was swept.
  if (thread->sweep_class == 0) thread->touched.store(false, std::memory_order_relaxed);
  if (!thread_release_class(thread, thread->sweep_class)) return;
  if (++thread->sweep_class == kClassCount) {
    thread->sweep_class = 0;
    if (now_ns != kSweepAllNow) thread->swept_ns = now_ns;
    count(Counter::k_sweeps);
  }
}

Sweep sweep_step(uint64_t now_ns) {
  LockGuard guard(g_thread_lock);
  Sweep result = Sweep::kNothing;
  for (Thread* thread = g_threads; thread != nullptr; thread = thread->next) {
    if (thread->wants_back.load(std::memory_order_relaxed)) continue;
    uint32_t state = kParked;
    if (!thread->gate.compare_exchange_strong(state, kSweeping, std::memory_order_acquire, std::memory_order_relaxed)) {
      continue;
    }
    bool due = has_work(thread) && is_due(thread, now_ns);
    if (due) {
      sweep_class_locked(thread, now_ns);
      result = Sweep::kStep;
    } else if (has_work(thread)) {
      result = Sweep::kLater;
    }
    thread->gate.store(kParked, std::memory_order_release);
    if (thread->wants_back.load(std::memory_order_relaxed)) {
      os::wake(reinterpret_cast<const uint32_t*>(&thread->gate), 1);
    }
    if (due) return result;
  }
  return result;
}

size_t punch(Page* page) {
  EBB_TEST_POINT("holes.claimed");
  page_fold_remote(page);
  page->flags &= static_cast<uint8_t>(~kFlagSparse);
  page->punched_live = static_cast<uint16_t>(page->countdown);
  return page->countdown != 0 && arena_of(page)->may_purge() ? page_punch_holes(page) : 0;
}

// One step: claims the page behind `anchor` and punches it. Both under the lock, so that whoever takes the lock
// afterwards knows that no page is being punched. Returns the page, still claimed; null at the end of the list.
Page* punch_next(Heap* heap, uint64_t serial, size_t cls, Page* anchor, size_t* returned) {
  LockGuard guard(g_sweep_step_lock);
  Page* page = page_claim_sparse(heap, serial, cls, anchor);
  if (page != nullptr && (page->flags & kFlagSparse) != 0) *returned += punch(page);
  return page;
}

size_t punch_list(Heap* heap, uint64_t serial, size_t cls) {
  size_t returned = 0;
  Page* anchor = nullptr;
  for (;;) {
    Page* page = punch_next(heap, serial, cls, anchor, &returned);
    if (anchor != nullptr) page_release(anchor);
    if (page == nullptr) return returned;
    anchor = page;
  }
}

size_t punch_heap(Heap* heap, uint64_t serial) {
  size_t returned = 0;
  for (size_t cls = 0; cls < kClassCount; ++cls) returned += punch_list(heap, serial, cls);
  return returned;
}

}  // namespace

bool sweep_parked_threads(uint64_t now_ns) {
  handover_collect();
  Sweep result;
  while ((result = sweep_step(now_ns)) == Sweep::kStep) {
  }
  return result == Sweep::kLater;
}

size_t punch_sparse_pages(Punch which) {
  // Zero before the lists are read: see g_sparse_pages.
  bool any = g_sparse_pages.exchange(0, std::memory_order_seq_cst) != 0 || which == Punch::kAll;
  size_t returned = any ? punch_heap(&g_main_heap, 0) : 0;
  HeapCursor cursor;
  uint64_t serial;
  while (FirstClassHeap* heap = any ? cursor.next(&serial) : nullptr) {
    bool has_sparse = heap->has_sparse.exchange(false, std::memory_order_seq_cst);
    if (has_sparse || which == Punch::kAll) returned += punch_heap(heap, serial);
  }
  return returned;
}

}  // namespace ebb
