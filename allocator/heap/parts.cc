#include "heap/parts.h"

#include <cstring>
#include <new>

#include "arena/cage.h"
#include "base/bits.h"
#include "base/test_point.h"
#include "heap/handover.h"
#include "heap/shared_pages.h"
#include "heap/subprocess.h"
#include "os/os.h"

namespace ebb {
namespace {

RecentPart& recent_of(Thread* thread, const FirstClassHeap* heap) {
  return thread->recent[heap->serial.load(std::memory_order_relaxed) % kRecentParts];
}

void link_locked(Thread* thread, FirstClassHeap* heap, ThreadHeap* part) {
  part->heap = heap;
  part->thread = thread;
  memset(part->borrowed, 0, sizeof(part->borrowed));
  part->prev = nullptr;
  part->next = thread->heaps;
  if (part->next != nullptr) part->next->prev = part;
  thread->heaps = part;
  part->heap_prev = nullptr;
  part->heap_next = heap->parts;
  if (part->heap_next != nullptr) part->heap_next->heap_prev = part;
  heap->parts = part;
}

// Takes a part out of both lists; the caller holds the thread's gate. Returns whether the heap has others.
bool unlink(Thread* thread, FirstClassHeap* heap, ThreadHeap* part) {
  if (part != &heap->home) {  // which part_find knows without
    RecentPart& recent = recent_of(thread, heap);
    if (recent.heap.load(std::memory_order_relaxed) == heap) recent.heap.store(nullptr, std::memory_order_relaxed);
  }
  if (part->next != nullptr) part->next->prev = part->prev;
  (part->prev != nullptr ? part->prev->next : thread->heaps) = part->next;
  bool has_others;
  {
    LockGuard guard(heap->lock);
    if (part->heap_next != nullptr) part->heap_next->heap_prev = part->heap_prev;
    (part->heap_prev != nullptr ? part->heap_prev->heap_next : heap->parts) = part->heap_next;
    if (part == &heap->home) heap->home_owner.store(kNoOwner, std::memory_order_relaxed);
    has_others = heap->parts != nullptr;
  }
  if (part != &heap->home) meta_give(part, sizeof(ThreadHeap));
  return has_others;
}

// Gives back what the part's pages have not carved yet and an earlier page left there. Pages that a heap fills are
// better off with it: they need no fault. Those of a heap that is built by now would keep it for the heap's life, and
// many heaps of mixed sizes would each keep a few OS pages more than they need. A thread that begins another heap has
// mostly done with the last but one.
EBB_COLD void trim_stale_tails(ThreadHeap* part) {
  part->has_stale_tails = false;
  const unsigned os_shift = floor_log2(os::page_bytes());
  for (Page* page : part->active) {
    if (page != nullptr) page_trim_tail(page, os_shift);
  }
}

// The caller is the thread, in its gate, and begins to use the heap.
void note_begun(Thread* thread, FirstClassHeap* heap) {
  FirstClassHeap* last_but_one = thread->begun[1];
  thread->begun[1] = thread->begun[0];
  thread->begun[0] = heap;
  // It may have ended: then it is nobody's home; or it is another heap by now, for which the same holds. Where others
  // were first in the heap, they see to their own part.
  if (last_but_one == nullptr || last_but_one->home_owner.load(std::memory_order_relaxed) != thread->id()) return;
  if (last_but_one->home.has_stale_tails) trim_stale_tails(&last_but_one->home);
}

// The thread whose part is first in the heap's list; null when there is none.
Thread* first_thread(FirstClassHeap* heap) {
  LockGuard guard(heap->lock);
  return heap->parts == nullptr ? nullptr : heap->parts->thread;
}

// The caller's own part. `has_others`: other threads may have parts.
bool detach_own(FirstClassHeap* heap, bool keep_blocks, bool* has_others) {
  *has_others = true;
  Thread* self = thread_self_if_any();
  if (self == nullptr) return true;
  Gate gate(self);
  if (!gate.is_open()) return false;
  ThreadHeap* part = part_find(self, heap);
  if (part == nullptr) return true;
  if (keep_blocks) thread_heap_release(part, false);
  *has_others = unlink(self, heap, part);
  return true;
}

}  // namespace

ThreadHeap* part_find(Thread* thread, Heap* any_heap) {
  if (any_heap->is_main()) return &thread->main;
  FirstClassHeap* heap = first_class(any_heap);
  if (heap->home_owner.load(std::memory_order_relaxed) == thread->id()) return &heap->home;
  RecentPart& recent = recent_of(thread, heap);
  if (recent.heap.load(std::memory_order_relaxed) == heap) return recent.part.load(std::memory_order_relaxed);
  for (ThreadHeap* part = thread->heaps; part != nullptr; part = part->next) {
    if (part->heap != heap) continue;
    recent.heap.store(heap, std::memory_order_relaxed);
    recent.part.store(part, std::memory_order_relaxed);
    return part;
  }
  return nullptr;
}

ThreadHeap* part_get(Thread* thread, Heap* any_heap) {
  ThreadHeap* part = part_find(thread, any_heap);
  if (part != nullptr) return part;
  FirstClassHeap* heap = first_class(any_heap);
  note_begun(thread, heap);
  {
    LockGuard guard(heap->lock);
    if (heap->home_owner.load(std::memory_order_relaxed) == kNoOwner) {
      heap->home_owner.store(thread->id(), std::memory_order_relaxed);
      link_locked(thread, heap, &heap->home);
      return &heap->home;
    }
  }
  void* memory = meta_take(sizeof(ThreadHeap));
  if (memory == nullptr) return nullptr;
  part = new (memory) ThreadHeap();
  LockGuard guard(heap->lock);
  link_locked(thread, heap, part);
  return part;
}

void parts_release_parked(Heap* heap) {
  LockGuard registry(g_thread_lock);
  for (Thread* thread = g_threads; thread != nullptr; thread = thread->next) {
    if (thread == thread_self_if_any() || thread->gate.load(std::memory_order_relaxed) != kParked) continue;
    bool parked = thread_freeze(thread);
    ThreadHeap* part = parked ? part_find(thread, heap) : nullptr;
    if (part != nullptr) thread_heap_release(part, false);
    thread_thaw(thread);
  }
}

void parts_leave(Thread* thread) {
  if (thread->current != &thread->main) {
    first_class(thread->current->heap)->default_users.fetch_sub(1, std::memory_order_relaxed);
    thread->current = &thread->main;
  }
  if (thread->subprocess != nullptr) thread->subprocess->threads.fetch_sub(1, std::memory_order_relaxed);
  thread->subprocess = nullptr;
  while (thread->heaps != nullptr) unlink(thread, first_class(thread->heaps->heap), thread->heaps);
}

bool parts_detach(FirstClassHeap* heap, bool keep_blocks) {
  bool has_others;
  if (!detach_own(heap, keep_blocks, &has_others)) return false;
  EBB_TEST_POINT("heap.own_part_gone");
  bool drop = !keep_blocks && heap->inherits;
  if (!drop && (!has_others || first_thread(heap) == nullptr)) return true;
  LockGuard registry(g_thread_lock);
  for (Thread* thread = g_threads; drop && thread != nullptr; thread = thread->next) handover_drop(thread, heap);
  while (Thread* thread = first_thread(heap)) {
    EBB_TEST_POINT("heap.before_freeze");
    bool parked = thread_freeze(thread);
    // It may have ended its part before it froze; then there may be another thread's.
    if (ThreadHeap* part = part_find(thread, heap)) {
      if (keep_blocks) parked ? thread_heap_release(part, false) : handover_add(thread, part);
      unlink(thread, heap, part);
    }
    thread_thaw(thread);
  }
  return true;
}

}  // namespace ebb
