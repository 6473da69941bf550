#include "diagnostics/snapshot.h"

#include "arena/cage.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "heap/thread.h"
#include "os/os.h"
#include "page/page.h"
#include "page/remote.h"

namespace ebb {
namespace {

size_t without(size_t whole, size_t part) { return whole > part ? whole - part : 0; }

// Whoever owns a page or a large block may be changing it: its plain fields are read as they are, and what comes of
// them is bounded by the size of the span. No race that matters, hence no report of one.
#define EBB_RACY_READ __attribute__((no_sanitize("thread")))

// Bytes of a page that hold memory: what was carved, or all of it when its span had been used before.
EBB_RACY_READ size_t resident_of(const Page* page, size_t carved, size_t block_bytes) {
  size_t span = size_t{page->slices} << kSliceShift;
  bool tail_clean = (page->flags & kFlagTailClean) != 0;
  return tail_clean ? min_of(align_up(carved * block_bytes, os::page_bytes()), span) : span;
}

EBB_RACY_READ void add_page(Snapshot* snapshot, const Page* page) {
  size_t cls = page->cls;
  if (cls >= kClassCount) return;  // just being made
  size_t block_bytes = class_bytes(cls);
  size_t carved = min_of<size_t>(page->carved, (size_t{page->slices} << kSliceShift) / block_bytes);
  size_t in_holes = min_of<size_t>(page->hole_blocks, carved);
  size_t returned = remote::count_of(page->remote.load(std::memory_order_relaxed));
  size_t live = min_of(without(page->countdown, returned), carved - in_holes);
  size_t holes = static_cast<size_t>(__builtin_popcountll(page->holes[0]) + __builtin_popcountll(page->holes[1])) *
                 os::page_bytes();
  ClassUse& use = snapshot->classes[cls];
  use.pages += 1;
  use.live_blocks += live;
  use.free_blocks += carved - in_holes - live;
  snapshot->hole_bytes += holes;
  snapshot->resident_bytes += without(resident_of(page, carved, block_bytes), holes);
}

EBB_RACY_READ void add_large(Snapshot* snapshot, const Page* page) {
  size_t usable = min_of(page->large.usable, size_t{page->slices} << kSliceShift);
  snapshot->large_blocks += 1;
  snapshot->large_bytes += usable;
  snapshot->resident_bytes += usable;
}

void add_span(Snapshot* snapshot, Slice* span) {
  size_t bytes = size_t{span->slices} << kSliceShift;
  switch (span->kind) {
    case SliceKind::kMeta:
      snapshot->metadata_bytes += bytes;
      return;
    case SliceKind::kArena:  // walked by itself
      return;
    case SliceKind::kPage:
      add_page(snapshot, as_page(span));
      break;
    case SliceKind::kLarge:
      add_large(snapshot, as_page(span));
      break;
    default:  // taken a moment ago, and not yet made into anything
      break;
  }
  snapshot->span_bytes += bytes;
}

// What stands in the caller's own lists is free, and only the caller may look at them. Not while parked: then
// they are the scavenger's. The gate keeps the list of the thread's heaps whole.
void take_off_own_lists(Snapshot* snapshot) {
  Thread* thread = thread_self_if_any();
  if (thread == nullptr || tls_heap == &g_empty_heap) return;
  Gate gate(thread);
  if (!gate.is_open()) return;  // a signal handler has interrupted the slow path
  auto take_off = [snapshot](const ThreadHeap* heap) {
    for (size_t cls = 0; cls < kClassCount; ++cls) {
      size_t count = 0;
      for (const Block* block = heap->free[cls]; block != nullptr; block = block->next) ++count;
      ClassUse& use = snapshot->classes[cls];
      count = min_of(count, use.live_blocks);
      use.live_blocks -= count;
      use.free_blocks += count;
    }
  };
  take_off(&thread->main);
  for (const ThreadHeap* heap = thread->heaps; heap != nullptr; heap = heap->next) take_off(heap);
}

void add_classes(Snapshot* snapshot) {
  snapshot->live_bytes = snapshot->large_bytes;
  snapshot->live_blocks = snapshot->large_blocks;
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    const ClassUse& use = snapshot->classes[cls];
    snapshot->live_bytes += use.live_blocks * class_bytes(cls);
    snapshot->live_blocks += use.live_blocks;
    snapshot->page_count += use.pages;
  }
}

}  // namespace

void take_snapshot(Snapshot* snapshot) {
  *snapshot = Snapshot{};
  {
    LockGuard guard(g_thread_lock);
    for (const Thread* thread = g_threads; thread != nullptr; thread = thread->next) ++snapshot->thread_count;
  }
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    Arena::Usage usage = arena->usage();
    snapshot->reserved_bytes += usage.reserved_bytes;
    snapshot->committed_bytes += usage.committed_bytes;
    snapshot->metadata_bytes += arena->resident_table_bytes();
    snapshot->dirty_bytes += usage.dirty_bytes;
    arena->for_each_used([snapshot](Slice* span) { add_span(snapshot, span); });
  }
  take_off_own_lists(snapshot);
  add_classes(snapshot);
  snapshot->resident_bytes += snapshot->dirty_bytes + snapshot->metadata_bytes;
}

}  // namespace ebb
