// A page under the visitor's eyes is claimed (or owned by a thread that rests), so that the scavenger neither
// changes nor frees it, and it marks the place in the heap's list: no lock is held while the visitor runs.
#include "heap/heap_survey.h"

#include "arena/cage.h"
#include "base/bits.h"
#include "heap/membership.h"
#include "heap/parts.h"
#include "heap/shared_pages.h"
#include "os/os.h"
#include "page/remote.h"

namespace ebb {
namespace {

// The owner may be in a fast path: its plain fields are read as they are. Not a race that matters, hence no report
// of one.
__attribute__((no_sanitize("thread"))) void add_span(HeapUse* use, const Slice* span) {
  const Page* page = static_cast<const Page*>(span);
  use->span_bytes += size_t{page->slices} << kSliceShift;
  if (page->kind == SliceKind::kLarge) {
    use->large_count += 1;
    use->live_blocks += 1;
    use->live_bytes += page->large.usable;
    return;
  }
  size_t handed_out = page->countdown;
  size_t returned = remote::count_of(page->remote.load(std::memory_order_relaxed));
  size_t live = handed_out > returned ? min_of<size_t>(handed_out - returned, page->capacity) : 0;
  use->page_count += 1;
  use->live_blocks += live;
  use->live_bytes += live * page->block_bytes;
}

// What stands in the calling thread's lists is free.
void take_off(HeapUse* use, const ThreadHeap* part) {
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    size_t count = 0;
    for (const Block* block = part->free[cls]; block != nullptr; block = block->next) ++count;
    count = min_of(count, use->live_blocks);
    use->live_blocks -= count;
    use->live_bytes -= min_of(count * class_bytes(cls), use->live_bytes);
  }
}

bool is_of_main(const Slice* span) {
  if (span->kind != SliceKind::kPage && span->kind != SliceKind::kLarge) return false;
  return static_cast<const Page*>(span)->heap.load(std::memory_order_relaxed) == &g_main_heap;
}

}  // namespace

HeapUse heap_use(Heap* heap) {
  HeapUse use;
  if (heap->is_main()) {
    for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
      arena->for_each_used([&use](Slice* span) {
        if (is_of_main(span)) add_span(&use, span);
      });
    }
  } else {
    LockGuard guard(heap->lock);
    for (Slice* span = first_class(heap)->spans; span != nullptr; span = span->ring_next) add_span(&use, span);
    for (ThreadHeap* part = first_class(heap)->parts; part != nullptr; part = part->heap_next) ++use.thread_count;
  }
  // Its own lists are the thread's to read only while it is not parked.
  Thread* self = thread_self_if_any();
  if (self != nullptr && tls_owner != kNobodyHere) {
    Gate gate(self);
    ThreadHeap* part = gate.is_open() ? part_find(self, heap) : nullptr;
    if (part != nullptr) take_off(&use, part);
  }
  return use;
}

namespace {

constexpr size_t kMostBlocks = kSliceBytes / kBlockAlign;

// A bit for each block of a page that is free.
class FreeMap {
 public:
  explicit FreeMap(const Page* page) : page_(page) {
    for (size_t word = 0; word <= page->capacity / 64u && word < kMostBlocks / 64; ++word) bits_[word] = 0;
  }
  bool test(uint32_t i) const { return bits_[i / 64] >> (i % 64) & 1; }
  void set(uint32_t i) { bits_[i / 64] |= uint64_t{1} << (i % 64); }
  void set_list(const Block* block) {
    for (; block != nullptr; block = block->next) {
      size_t offset = static_cast<size_t>(reinterpret_cast<const char*>(block) - page_->start);
      set(static_cast<uint32_t>(offset / page_->block_bytes));
    }
  }

 private:
  const Page* page_;
  uint64_t bits_[kMostBlocks / 64];
};

// The list of the thread that allocates from the page, in its part of the heap.
const Block* handed_out_list(Heap* heap, const Page* page) {
  auto list_of = [page](const ThreadHeap* part) {
    return part->active[page->cls] == page ? part->free[page->cls] : nullptr;
  };
  OwnerId owner = page->owner.load(std::memory_order_relaxed);
  if (owner == kNoOwner) return nullptr;
  if (heap->is_main()) return list_of(&reinterpret_cast<const Thread*>(owner)->main);
  LockGuard guard(heap->lock);
  for (const ThreadHeap* part = first_class(heap)->parts; part != nullptr; part = part->heap_next) {
    if (part->thread->id() == owner) return list_of(part);
  }
  return nullptr;
}

bool visit_page(Heap* heap, Page* page, HeapVisitor visit, void* argument) {
  FreeMap map(page);
  map.set_list(page->free);
  map.set_list(remote::head_of(page, page->remote.load(std::memory_order_acquire)));
  map.set_list(handed_out_list(heap, page));
  for (uint32_t i = 0; page->hole_blocks != 0 && i < page->carved; ++i) {
    if (page_block_in_hole(page, i)) map.set(i);
  }
  HeapArea area{page->start, size_t{page->slices} << kSliceShift, page->block_bytes, 0};
  for (uint32_t i = 0; i < page->carved; ++i) area.live_blocks += !map.test(i);
  if (!visit(area, nullptr, argument)) return false;
  for (uint32_t i = 0; i < page->carved; ++i) {
    if (!map.test(i) && !visit(area, page->start + size_t{i} * page->block_bytes, argument)) return false;
  }
  return true;
}

bool visit_large(Page* page, HeapVisitor visit, void* argument) {
  HeapArea area{page->start, size_t{page->slices} << kSliceShift, page->large.usable, 1};
  return visit(area, nullptr, argument) && visit(area, page->start + page->large.offset, argument);
}

// The place of a visit in a heap.
struct Place {
  Page* page = nullptr;
  bool claimed = false;
  Arena* arena = nullptr;  // the main heap only, which is found through all arenas
};

enum class Step { kThere, kEnd, kBusy };

// Claims the page at `span` if nobody owns it.
Step arrive(Place* place, Page* page) {
  bool nobodys = page->kind == SliceKind::kPage && page->owner.load(std::memory_order_relaxed) == kNoOwner;
  if (nobodys && !remote::try_claim(page)) return Step::kBusy;
  place->page = page;
  place->claimed = nobodys;
  return Step::kThere;
}

Step step_first_class(FirstClassHeap* heap, const Place& from, Place* to) {
  LockGuard guard(heap->lock);
  Slice* span = from.page != nullptr ? from.page->ring_next : heap->spans;
  return span == nullptr ? Step::kEnd : arrive(to, as_page(span));
}

Step step_main(const Place& from, Place* to) {
  for (to->arena = from.arena != nullptr ? from.arena : first_arena(); to->arena != nullptr; to->arena = to->arena->next) {
    Slice* behind = to->arena == from.arena ? from.page : nullptr;
    Step result = Step::kEnd;
    to->arena->find_used(behind, [&](Slice* span) {
      if (!is_of_main(span)) return false;
      result = arrive(to, as_page(span));
      return true;
    });
    if (result != Step::kEnd) return result;
  }
  return Step::kEnd;
}

void wait_a_moment() {
  static constinit uint32_t never = 0;
  os::wait(&never, 0, 20000);
}

}  // namespace

bool heap_visit(Heap* heap, HeapVisitor visit, void* argument) {
  // A parked thread takes its lists back: the scavenger must not change them under the visitor's eyes.
  if (Thread* self = thread_self_if_any()) Gate gate(self);
  parts_release_parked(heap);
  Place at;
  for (bool go_on = true;;) {
    Place next;
    Step step = Step::kEnd;
    if (go_on) {
      while ((step = heap->is_main() ? step_main(at, &next) : step_first_class(first_class(heap), at, &next)) == Step::kBusy) {
        wait_a_moment();
      }
    }
    if (at.claimed) page_release(at.page);
    if (step == Step::kEnd) return go_on;
    at = next;
    go_on = at.page->kind == SliceKind::kLarge ? visit_large(at.page, visit, argument)
                                               : visit_page(heap, at.page, visit, argument);
  }
}

}  // namespace ebb
