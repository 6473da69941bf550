// The end of a heap, step by step:
//   1. parts_detach takes every thread out of it, so that nobody allocates from it any more;
//   2. destroy: claims each page that the scavenger may still look at, one in a list, and gives all spans back,
//      neighbours as one;
//      delete: moves span after span to the target, some at a time, by the protocol of membership.h;
//   3. its structure is given back (heap/heap_structures.h).
#include "heap/heap_lifetime.h"

#include <new>

#include "arena/adopted.h"
#include "arena/cage.h"
#include "base/bits.h"
#include "base/test_point.h"
#include "heap/heap_structures.h"
#include "heap/large.h"
#include "heap/membership.h"
#include "heap/parts.h"
#include "heap/process.h"
#include "heap/shared_pages.h"
#include "heap/thread.h"
#include "os/os.h"
#include "page/remote.h"
#include "stats/counters.h"

namespace ebb {
namespace {

constinit Lock g_heap_lock{LockRank::kHeapRegistry};
constinit FirstClassHeap* g_heaps = nullptr;
constinit HeapCursor* g_cursors = nullptr;
constinit uint64_t g_last_serial = 0;

// Spans that are freed in one go, with the heap's lock held, which only the scavenger and a fork may wait for; and
// those that are moved in one go, with locks held that frees wait for.
constexpr uint32_t kSpansAtATime = 256;
constexpr int kMovesAtATime = 64;

bool is_somebodys_default(const FirstClassHeap* heap) {
  return heap->default_users.load(std::memory_order_relaxed) != 0;
}

void registry_add_locked(FirstClassHeap* heap) {
  heap->registry_prev = nullptr;
  heap->registry_next = g_heaps;
  if (g_heaps != nullptr) g_heaps->registry_prev = heap;
  g_heaps = heap;
}

[[maybe_unused]] bool is_empty(const ThreadHeap& part) {
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    if (part.free[cls] != nullptr || part.active[cls] != nullptr || part.spare[cls] != nullptr) return false;
  }
  return true;
}

// Everything but the lock, which a late reader of Page::heap may hold just now, and what the last life's end has left
// empty: the lists of shared pages, spans, parts and the home part.
void reset(FirstClassHeap* heap) {
  EBB_ASSERT(heap->home_owner.load(std::memory_order_relaxed) == kNoOwner);
  EBB_ASSERT(heap->parts == nullptr && heap->spans == nullptr && is_empty(heap->home));
  heap->charged_bytes.store(0, std::memory_order_relaxed);
  heap->has_sparse.store(false, std::memory_order_relaxed);
  heap->inherits = false;
  heap->limit_bytes.store(SIZE_MAX, std::memory_order_relaxed);
  heap->limit_callback.store(nullptr, std::memory_order_relaxed);
}

}  // namespace

void registry_remove_locked(FirstClassHeap* heap) {
  for (HeapCursor* cursor = g_cursors; cursor != nullptr; cursor = cursor->other_) {
    if (cursor->at_ == heap) cursor->at_ = heap->registry_next;
  }
  if (heap->registry_next != nullptr) heap->registry_next->registry_prev = heap->registry_prev;
  (heap->registry_prev != nullptr ? heap->registry_prev->registry_next : g_heaps) = heap->registry_next;
}

HeapCursor::HeapCursor() {
  LockGuard guard(g_heap_lock);
  at_ = g_heaps;
  other_ = g_cursors;
  g_cursors = this;
}

HeapCursor::~HeapCursor() {
  LockGuard guard(g_heap_lock);
  HeapCursor** link = &g_cursors;
  while (*link != this) link = &(*link)->other_;
  *link = other_;
}

FirstClassHeap* HeapCursor::next(uint64_t* serial) {
  LockGuard guard(g_heap_lock);
  FirstClassHeap* heap = at_;
  if (heap == nullptr) return nullptr;
  at_ = heap->registry_next;
  *serial = heap->serial.load(std::memory_order_relaxed);
  return heap;
}

FirstClassHeap* heap_of_subprocess(const Subprocess* subprocess, const FirstClassHeap* but) {
  LockGuard guard(g_heap_lock);
  FirstClassHeap* heap = g_heaps;
  while (heap != nullptr && (heap->subprocess != subprocess || heap == but)) heap = heap->registry_next;
  return heap;
}

uint32_t subprocess_default_users(const Subprocess* subprocess) {
  LockGuard guard(g_heap_lock);
  uint32_t users = 0;
  for (FirstClassHeap* heap = g_heaps; heap != nullptr; heap = heap->registry_next) {
    if (heap->subprocess == subprocess) users += heap->default_users.load(std::memory_order_relaxed);
  }
  return users;
}

FirstClassHeap* heap_new(Subprocess* subprocess, const SpanSource& source) {
  if (!process_start()) return nullptr;
  LockGuard guard(g_heap_lock);
  FirstClassHeap* heap = heap_structure_take_locked();
  if (EBB_UNLIKELY(heap == nullptr)) return nullptr;
  reset(heap);
  heap->source = source;
  heap->subprocess = subprocess;
  heap->serial.store(++g_last_serial, std::memory_order_relaxed);
  registry_add_locked(heap);
  count(Counter::k_heaps_made);
  return heap;
}

namespace {

// The structure of a heap that has neither parts nor spans any more.
void end(FirstClassHeap* heap) {
  bool arm;
  {
    LockGuard guard(g_heap_lock);
    registry_remove_locked(heap);
    {
      // A scavenger that still looks for its sparse pages finds out here.
      LockGuard heap_guard(heap->lock);
      heap->serial.store(0, std::memory_order_relaxed);
    }
    if (heap->source.only != nullptr) {
      arena_let_go(static_cast<ProgramArena*>(heap->source.only));
    }
    arm = heap_structure_give_locked(heap);
    count(Counter::k_heaps_gone);
  }
  if (arm) announce_armed();
}

// Spans that stand side by side, to be given back as one.
class Run {
 public:
  ~Run() { give(); }
  void add(Slice* span, uint32_t slices) {
    if (slices_ != 0 && arena_id_ == span->arena_id) {
      if (slice_after(first_, slices_) == span) {
        slices_ += slices;
        return;
      }
      if (slice_after(span, slices) == first_) {
        first_ = span;
        slices_ += slices;
        return;
      }
    }
    give();
    first_ = span;
    slices_ = slices;
    arena_id_ = span->arena_id;
  }

 private:
  void give() {
    if (slices_ != 0) arena_of(first_)->give_run(first_, {slices_});
    slices_ = 0;
  }

  Slice* first_ = nullptr;
  uint32_t slices_ = 0;
  uint16_t arena_id_ = 0;
};

// A page at rest is nobody's and in no list, so nothing has to be undone: page_release has left its memory in order.
// Nearly all pages of a large heap are, as a page that is full is released.
EBB_INLINE bool is_page_at_rest(const Slice* span) {
  return span->kind == SliceKind::kPage && (span->remote.load(std::memory_order_relaxed) & remote::kOwnerless) != 0 &&
         span->next == nullptr && span->slices == 1;
}

// Unmakes pages at rest from `*at` on, each standing in front of the one before, as they do when a heap has grown
// undisturbed. Returns their number; `*at` is what follows in the heap's list. A dozen instructions and one cache line a
// page: they are what the end of a large heap costs. Entries side by side in a table are of one arena: another one
// within it is set apart by its guards.
EBB_INLINE uint32_t unmake_pages_at_rest(Slice** at, uint32_t most) {
  Slice* const first = *at;
  Slice* const behind_last = slice_before(first, most);
  Slice* span = first;
  while (is_page_at_rest(span)) {
    span->kind = SliceKind::kUsed;
    Slice* before = slice_before(span, 1);
    *at = span->ring_next;
    span = before;
    if (*at != before || before == behind_last) break;
  }
  return slices_between(span, first);
}

// The page was in a thread's hands until parts_detach. The next life of the heap begins with empty lists.
void forget_in(ThreadHeap* home, Page* page) {
  home->free[page->cls] = nullptr;
  home->active[page->cls] = home->spare[page->cls] = nullptr;
  page->owner.store(kNoOwner, std::memory_order_relaxed);
}

// Takes a page that is about to go out of the heap's list; false when the scavenger is at it. A page in no list is
// nobody's business any more.
bool unlist_unless_busy(FirstClassHeap* heap, Page* page) {
  if (!remote::try_claim(page)) return false;
  unlist_page_locked(heap, page);
  return true;
}

// Pages and large blocks that were freed in one go.
struct Freed {
  uint64_t pages = 0, large = 0;
  // A large block whose end takes a system call, or is told to a hook of the program's: the caller's to free.
  Page* moved = nullptr;
  bool is_busy = false;   // the next page is one that the scavenger works on
};

// Frees the first of the heap's spans.
Freed free_some_spans_locked(FirstClassHeap* heap) {
  const unsigned os_shift = floor_log2(os::page_bytes());
  Freed freed;
  Run run;
  Slice* span = heap->spans;
  while (span != nullptr && freed.pages + freed.large < kSpansAtATime) {
    Page* page = as_page(span);
    if (uint32_t pages = unmake_pages_at_rest(&span, kSpansAtATime)) {
      freed.pages += pages;
      run.add(slice_before(page, pages - 1), pages);
      continue;
    }
    span = page->ring_next;
    if (page->kind == SliceKind::kPage) {
      if (page->next != nullptr && !unlist_unless_busy(heap, page)) {
        freed.is_busy = true;
        span = page;
        break;
      }
      if (page->owner.load(std::memory_order_relaxed) != kNoOwner) forget_in(&heap->home, page);
      page_trim_tail(page, os_shift);
      page_unmake_with_blocks(page);
      ++freed.pages;
    } else {
      if ((page->flags & (kFlagMoved | kFlagSampled)) != 0) {
        freed.moved = page;
        break;
      }
      page->kind = SliceKind::kUsed;
      ++freed.large;
    }
    run.add(page, page->slices);
  }
  heap->spans = span;
  if (span != nullptr) span->ring_prev = nullptr;
  return freed;
}

// Waits for the scavenger's work on one page.
void wait_for_sweep_step() {
  static constinit uint32_t never = 0;
  { LockGuard guard(g_sweep_step_lock); }
  os::wait(&never, 0, 20000);
}

// Frees all spans of a heap that no thread has a part in.
void free_spans(FirstClassHeap* heap) {
  for (bool more = true; more;) {
    Freed freed;
    {
      LockGuard guard(heap->lock);
      freed = free_some_spans_locked(heap);
      more = heap->spans != nullptr;
    }
    count(Counter::k_pages_freed, freed.pages);
    if (freed.large != 0) count(Counter::k_large_freed, freed.large);
    if (freed.moved != nullptr) large_free_left(freed.moved);
    if (freed.is_busy) wait_for_sweep_step();
  }
}

// Moves some of the heap's spans to the target. True when all are gone.
bool move_some_spans(FirstClassHeap* heap, Heap* target) {
  // The list of heaps is held so that fork, which locks all of them, does not come between the two.
  LockGuard registry(g_heap_lock);
  LockGuard guard(heap->lock);
  LockGuard target_guard(target->lock);
  uint64_t sparse = 0;
  for (int i = 0; heap->spans != nullptr; ++i) {
    if (i == kMovesAtATime) break;
    Page* page = as_page(heap->spans);
    remove_span_locked(heap, page);
    if (!target->is_main()) {
      add_span_locked(first_class(target), page);
      first_class(target)->charged_bytes.fetch_add(charge_of(page), std::memory_order_relaxed);
    }
    if (page->kind == SliceKind::kPage && page->next != nullptr) {
      bool is_sparse = remote::is_sparse(page);
      unlist_page_locked(heap, page);
      list_page_locked(target, page, is_sparse);
      sparse += is_sparse;
    }
    EBB_TEST_POINT("heap.moving");
    // Last: a claimer that sees it may retire the page at once.
    page->heap.store(target, std::memory_order_release);
  }
  if (sparse != 0) {
    if (!target->is_main()) first_class(target)->has_sparse.store(true, std::memory_order_relaxed);
    g_sparse_pages.fetch_add(sparse, std::memory_order_relaxed);
  }
  return heap->spans == nullptr;
}

}  // namespace

bool heap_delete(FirstClassHeap* heap, Heap* target) {
  if (is_somebodys_default(heap) || !parts_detach(heap, true)) return false;
  EBB_TEST_POINT("heap.delete");
  while (!move_some_spans(heap, target)) {
  }
  end(heap);
  run_deferred();
  return true;
}

bool heap_destroy(FirstClassHeap* heap) {
  if (is_somebodys_default(heap) || !parts_detach(heap, false)) return false;
  EBB_TEST_POINT("heap.destroy");
  free_spans(heap);
  end(heap);
  run_deferred();
  return true;
}

bool heaps_return_structures(bool forced) {
  LockGuard guard(g_heap_lock);
  return heap_structures_return_locked(forced);
}

bool heap_structures_wait() {
  LockGuard guard(g_heap_lock);
  return heap_structures_wait_locked();
}

void heaps_lock_registry_for_fork() { g_heap_lock.lock(); }

void heaps_lock_for_fork() {
  for (FirstClassHeap* heap = g_heaps; heap != nullptr; heap = heap->registry_next) heap->lock.lock();
  g_main_heap.lock.lock();
}

void heaps_unlock_after_fork(bool child) {
  g_main_heap.lock.open_after_fork();
  for (FirstClassHeap* heap = g_heaps; heap != nullptr; heap = heap->registry_next) heap->lock.open_after_fork();
  if (child) {
    heap_structures_after_fork_locked();
    g_cursors = nullptr;
  }
}

void heaps_unlock_registry_after_fork() { g_heap_lock.open_after_fork(); }

}  // namespace ebb
