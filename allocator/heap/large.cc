#include "heap/large.h"

#include "arena/cage.h"
#include "base/bits.h"
#include "heap/misuse.h"
#include "heap/thread.h"
#include "os/os.h"
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

// Below this a copy is cheaper: what was moved has to be mapped anew when it is freed, so its memory is lost
// for warm reuse, and a page fault costs as much as copying a page.
constexpr size_t kMoveLeast = 4 * MiB;

size_t next_colour_offset() {
  return g_next_colour.fetch_add(5, std::memory_order_relaxed) % kColours * kColourStep;
}

void* finish(Page* page, Heap* heap, size_t size, size_t offset) {
  page->owner.store(kNoOwner, std::memory_order_relaxed);
  page->heap = heap;
  page->flags = 0;
  page->large.usable = large_usable(size);
  page->large.offset = offset;
  page->kind = SliceKind::kLarge;
  count(Counter::k_large_made);
  return page->start + offset;
}

size_t span_bytes(const Page* page) { return size_t{page->slices} << kSliceShift; }

// Gives the span back; `clean`: its memory is gone already.
void give_back(Page* page, bool clean) {
  count(Counter::k_large_freed);
  // Moved OS pages form a mapping of their own. Renewed, it joins its neighbours, so the number of mappings
  // is bounded by that of the live blocks that were moved.
  if ((page->flags & kFlagMoved) != 0 && os::renew(page->start, span_bytes(page))) clean = true;
  arena_of(page)->give(page, clean);
  run_deferred();
}

}  // namespace

void* large_allocate(Heap* heap, size_t size, size_t alignment, bool* zero) {
  if (EBB_UNLIKELY(size > kMaxRequestBytes - 2 * kSliceBytes || alignment > kMaxRequestBytes / 2)) return nullptr;
  size_t offset = size >= kColouredLeast && alignment <= kColourStep ? next_colour_offset() : 0;
  size_t slices = (large_usable(size) + offset + kSliceBytes - 1) >> kSliceShift;
  if (EBB_UNLIKELY(slices > UINT32_MAX / 2 || alignment >> kSliceShift > UINT32_MAX / 2)) return nullptr;
  Slice* span = take_span({static_cast<uint32_t>(slices)}, alignment, zero);
  if (EBB_UNLIKELY(span == nullptr)) return nullptr;
  return finish(as_page(span), heap, size, offset);
}

void large_release(Page* page, void* p) {
  if (EBB_UNLIKELY(p != page->start + page->large.offset)) return report_invalid_pointer("free", p);
  give_back(page, false);
}

void* large_resize(Page* page, size_t size) {
  size_t offset = page->large.offset;
  size_t usable = large_usable(size);
  char* p = page->start + offset;
  if (usable + offset <= span_bytes(page)) {
    // Shrinking gives whole slices back; a span that keeps some slack for growth loses it only then.
    SliceCount keep = SliceCount::from_bytes_up(usable + offset);
    if (usable < page->large.usable && keep.value < page->slices) arena_of(page)->give_tail(page, keep);
    page->large.usable = usable;
    run_deferred();
    return p;
  }
  if (size > kMaxRequestBytes / 2) return nullptr;
  SliceCount wanted = SliceCount::from_bytes_up(usable + offset);
  if (arena_of(page)->extend(page, wanted)) {
    page->large.usable = usable;
    return p;
  }
  if (page->large.usable < kMoveLeast) return nullptr;
  SliceCount roomy = SliceCount::from_bytes_up(usable + offset + usable / kGrowthShare);
  Slice* span = take_span(roomy, kSliceBytes, nullptr);
  if (span == nullptr) return nullptr;
  if (!os::move_pages(page->start, span->start, span_bytes(page))) {
    arena_of(span)->give(span);
    return nullptr;
  }
  void* result = finish(as_page(span), page->heap, size, offset);
  as_page(span)->flags |= kFlagMoved;
  give_back(page, true);
  return result;
}

bool large_clear(Page* page, size_t size) {
  // Half a millisecond of clearing, or one system call and faults only for what is touched.
  constexpr size_t kPurgeLeast = 1 * MiB;
  return size >= kPurgeLeast && os::purge(page->start, span_bytes(page));
}

}  // namespace ebb
