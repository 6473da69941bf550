#include "heap/large.h"

#include <cstring>

#include "arena/cage.h"
#include "base/bits.h"
#include "heap/membership.h"
#include "heap/misuse.h"
#include "heap/sample_list.h"
#include "heap/sampling.h"
#include "heap/thread.h"
#include "os/os.h"
#include "page/live_blocks.h"
#include "stats/counters.h"

namespace ebb {
namespace {

// Blocks of at least this size start at varying cache lines: arrays that a program walks in lockstep would
// otherwise all fall into the same sets of the L1 cache.
constexpr size_t kColouredLeast = 256 * KiB;
constexpr size_t kColours = 16;
constexpr size_t kColourStep = 4 * kCacheLine;
constinit std::atomic<uint32_t> g_next_colour{0};

// A resize that moves OS pages takes this share more address space (not memory), so that a block grown in
// small steps moves a logarithmic number of times.
constexpr size_t kGrowthShare = 8;

// A block of this size is given back to the OS as it is freed: so much memory is not kept for a tenth of a
// second, and what was never touched (a terabyte of reserved address space) costs one call, not thousands.
constexpr size_t kReturnLeast = 1 * GiB;

// Below this a copy is cheaper: what was moved has to be mapped anew when it is freed, so its memory is lost
// for warm reuse, and a page fault costs as much as copying a page.
constexpr size_t kMoveLeast = 4 * MiB;

// Spans from this on have sixteen lengths a doubling, so that one that was freed fits the next block of about its size
// and starts where memory is warm. What lies behind the block is touched by nobody.
constexpr size_t kRoundedLeast = 4 * MiB >> kSliceShift;

constexpr size_t span_length(size_t slices) {
  if (slices < kRoundedLeast) return slices;
  return align_up(slices, size_t{1} << (floor_log2(slices) - 4));
}

size_t next_colour_offset() {
  return g_next_colour.fetch_add(5, std::memory_order_relaxed) % kColours * kColourStep;
}

// Makes a span into a block; its heap is charged.
void* finish(Page* page, size_t usable, size_t offset) {
  page->owner.store(kNoOwner, std::memory_order_relaxed);
  page->flags = 0;
  page->large.usable = usable;
  page->large.offset = offset;
  page->kind = SliceKind::kLarge;
  count(Counter::k_large_made);
  mark_live(page, page->start + offset);
  return page->start + offset;
}

size_t span_bytes(const Page* page) { return size_t{page->slices} << kSliceShift; }

void join(Heap* heap, Page* page) {
  page->heap.store(heap, std::memory_order_relaxed);
  if (EBB_LIKELY(heap->is_main())) return;
  LockGuard guard(heap->lock);
  add_span_locked(first_class(heap), page);
}

void leave(Page* page) {
  if (EBB_LIKELY(in_main_heap(page))) return;
  Heap* heap = lock_heap_of(page);
  if (!heap->is_main()) {
    remove_span_locked(first_class(heap), page);
    uncharge(heap, charge_of(page));
  }
  heap->lock.unlock();
}

// Another size, within the span or what it is about to become; false when the heap's limit forbids it.
bool set_usable(Page* page, size_t usable) {
  if (EBB_LIKELY(in_main_heap(page))) {
    page->large.usable = usable;
    return true;
  }
  Heap* heap = lock_heap_of(page);
  bool allowed = usable <= page->large.usable || charge(heap, usable - page->large.usable);
  if (usable < page->large.usable) uncharge(heap, page->large.usable - usable);
  if (allowed) page->large.usable = usable;
  heap->lock.unlock();
  return allowed;
}

// Puts `to` in the place of `from` in their heap, with what it is charged.
void replace(Page* from, Page* to) {
  Heap* heap = lock_heap_of(from);
  to->heap.store(heap, std::memory_order_relaxed);
  if (!heap->is_main()) {
    remove_span_locked(first_class(heap), from);
    add_span_locked(first_class(heap), to);
  }
  heap->lock.unlock();
}

// Gives the span of a block that is in no heap any more back; `clean`: its memory is gone already.
void give_back(Page* page, bool clean) {
  count(Counter::k_large_freed);
  // Moved OS pages form a mapping of their own. Renewed, it joins its neighbours, so the number of mappings
  // is bounded by that of the live blocks that were moved.
  if ((page->flags & kFlagMoved) != 0 && os::renew(page->start, span_bytes(page))) clean = true;
  if (!clean && span_bytes(page) >= kReturnLeast && arena_of(page)->may_remap()) {
    clean = os::purge(page->start, span_bytes(page));
  }
  arena_of(page)->give(page, clean);
  run_deferred();
}

}  // namespace

namespace {

// A block of `usable` bytes in a span of so many slices.
EBB_INLINE void* allocate_span(Heap* heap, size_t usable, size_t slices, size_t offset, size_t alignment, bool* zero) {
  if (EBB_UNLIKELY(!charge(heap, usable))) return nullptr;
  Slice* span = take_span_from(source_of(heap), {static_cast<uint32_t>(slices)}, alignment, zero);
  if (EBB_UNLIKELY(span == nullptr)) {
    uncharge(heap, usable);
    return nullptr;
  }
  void* p = finish(as_page(span), usable, offset);
  join(heap, as_page(span));
  return p;
}

// What is known of a sampled block ends with it.
void end_sample(Page* page) {
  if (EBB_UNLIKELY((page->flags & kFlagSampled) != 0)) sample_end(page);
}

}  // namespace

void* large_allocate(Heap* heap, size_t size, size_t alignment, bool* zero) {
  if (EBB_UNLIKELY(size > kMaxRequestBytes - 2 * kSliceBytes || alignment > kMaxRequestBytes / 2)) return nullptr;
  size_t offset = size >= kColouredLeast && alignment <= kColourStep ? next_colour_offset() : 0;
  size_t slices = span_length((large_usable(size) + offset + kSliceBytes - 1) >> kSliceShift);
  if (EBB_UNLIKELY(slices > UINT32_MAX / 2 || alignment >> kSliceShift > UINT32_MAX / 2)) return nullptr;
  return allocate_span(heap, large_usable(size), slices, offset, alignment, zero);
}

void* large_allocate_with_room(Heap* heap, size_t size, size_t room) {
  if (!heap->is_main() || EBB_UNLIKELY(size > kMaxRequestBytes / 4)) return nullptr;
  size_t offset = size >= kColouredLeast ? next_colour_offset() : 0;
  size_t slices = span_length(SliceCount::from_bytes_up(large_usable(size) + offset + room).value);
  if (EBB_UNLIKELY(slices > UINT32_MAX / 2)) return nullptr;
  return allocate_span(heap, large_usable(size), slices, offset, kSliceBytes, nullptr);
}

void* large_allocate_small(Heap* heap, size_t usable, bool* zero) {
  EBB_ASSERT(usable <= kLargestBlock);
  return allocate_span(heap, usable, 1, 0, kSliceBytes, zero);
}

void large_release(Page* page, void* p) {
  if (EBB_UNLIKELY(p != page->start + page->large.offset)) return report_invalid_pointer("free", p);
  if (EBB_UNLIKELY(!take_back(page, p))) return report_double_free(p);
  end_sample(page);
  leave(page);
  give_back(page, false);
}

void large_free_left(Page* page) {
  end_sample(page);
  give_back(page, false);
}

namespace {

// Moves the OS pages of a block that has no room to grow; null when a copy would be better or is all there is.
void* move_pages_of(Page* page, size_t size) {
  size_t offset = page->large.offset;
  size_t old_usable = page->large.usable;
  size_t usable = large_usable(size);
  if (old_usable < kMoveLeast || !arena_of(page)->may_remap()) return nullptr;
  SliceCount roomy = SliceCount::from_bytes_up(usable + offset + usable / kGrowthShare);
  Slice* span = take_span_from(source_of(page->heap.load(std::memory_order_relaxed)), roomy, kSliceBytes, nullptr);
  if (span == nullptr) return nullptr;
  if (!arena_of(span)->may_remap() || !set_usable(page, usable) ||
      !os::move_pages(page->start, span->start, span_bytes(page))) {
    set_usable(page, old_usable);
    arena_of(span)->give(span);
    return nullptr;
  }
  end_sample(page);
  void* result = finish(as_page(span), usable, offset);
  as_page(span)->flags |= kFlagMoved;
  replace(page, as_page(span));
  give_back(page, true);
  return result;
}

EBB_INLINE void* resize(Page* page, size_t size) {
  size_t offset = page->large.offset;
  size_t old_usable = page->large.usable;
  size_t usable = large_usable(size);
  char* p = page->start + offset;
  if (usable + offset <= span_bytes(page)) {
    // Shrinking gives whole slices back; a span that keeps some slack for growth loses it only then.
    SliceCount keep = SliceCount::from_bytes_up(usable + offset);
    if (!set_usable(page, usable)) return nullptr;
    end_sample(page);
    if (usable < old_usable && keep.value < page->slices) arena_of(page)->give_tail(page, keep);
    run_deferred();
    return p;
  }
  if (size > kMaxRequestBytes / 2 || !set_usable(page, usable)) return nullptr;
  if (arena_of(page)->extend(page, SliceCount::from_bytes_up(usable + offset))) {
    end_sample(page);
    return p;
  }
  set_usable(page, old_usable);
  return move_pages_of(page, size);
}

}  // namespace

void* large_resize(Page* page, size_t size) {
  void* p = resize(page, size);
  // For the profile, the old block was freed and the new one allocated.
  if (sampling_is_on() && p != nullptr) count_large(as_page(find_slice(p)), nullptr);
  return p;
}

void large_clear(void* p, size_t size) {
  // Half a millisecond of clearing, or one system call and faults only for what is touched.
  constexpr size_t kPurgeLeast = 1 * MiB;
  const Slice* span = find_slice(p);
  const Arena* arena = arena_of(span);
  bool is_much = size_t{span->dirty} << kSliceShift >= kPurgeLeast;
  if (is_much && arena->may_purge() && os::purge(span->start, size_t{span->slices} << kSliceShift)) return;
  char* end = static_cast<char*>(p) + size;
  arena->for_each_dirty_run(span, [p, end](char* first, char* behind) {
    first = max_of(first, static_cast<char*>(p));
    behind = min_of(behind, end);
    if (first < behind) memset(first, 0, static_cast<size_t>(behind - first));
  });
}

}  // namespace ebb
