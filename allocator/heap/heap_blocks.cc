#include "heap/heap_blocks.h"

#include <cstring>

#include "base/bits.h"
#include "heap/alloc.h"
#include "heap/large.h"
#include "heap/misuse.h"
#include "heap/refill.h"
#include "heap/sampling.h"
#include "os/os.h"

namespace ebb {
namespace {

EBB_INLINE void* or_out_of_memory(void* p) {
  if (EBB_UNLIKELY(p == nullptr)) os::set_out_of_memory();
  return p;
}

// The thread's part without its gate; null when it must be made, or given back from a park.
EBB_INLINE ThreadHeap* part_of_any(Heap* heap) {
  if (!heap->is_main()) return part_at_hand(first_class(heap));
  return tls_owner == kNobodyHere ? nullptr : &tls_thread->main;
}

EBB_INLINE void* take(Heap* heap, size_t cls, bool* fresh) {
  if (sampling_is_on()) return take_block_counted(heap, cls, fresh, __builtin_return_address(0));
  return take_block(heap, cls, fresh);
}

// A block of class `cls`: listed, or of the blocks that the active page got back, or from the slow path.
void* allocate_class(Heap* heap, size_t cls, bool* fresh) {
  ThreadHeap* part = part_of_any(heap);
  if (part == nullptr) return take(heap, cls, fresh);
  Block* block = part->free[cls];
  if (block == nullptr) {
    Page* page = part->active[cls];
    if (page == nullptr || page->free == nullptr || is_short_batch(page) || sampling_is_on()) {
      return take(heap, cls, fresh);
    }
    block = page_take_list(page);
  }
  part->free[cls] = block->next;
  return hand_out(block);
}

// Whether the request, or the class of it, is one that blocks of a page serve.
bool is_class_size(size_t size) { return size <= kLargestBlock; }

}  // namespace

void* heap_allocate_slow(Heap* heap, size_t size) {
  void* p = is_class_size(size) ? allocate_class(heap, class_of(size), nullptr)
                                : take_large(heap, size, kBlockAlign, nullptr, __builtin_return_address(0));
  return or_out_of_memory(p);
}

void* heap_allocate_zeroed(Heap* heap, size_t size) {
  if (is_class_size(size)) {
    bool fresh = false;
    void* p = allocate_class(heap, class_of(size), &fresh);
    if (p != nullptr) memset(p, 0, fresh ? min_of(size, sizeof(Block)) : size);
    return or_out_of_memory(p);
  }
  bool zero = false;
  void* p = take_large(heap, size, kBlockAlign, &zero, __builtin_return_address(0));
  if (p != nullptr && !zero) large_clear(p, size);
  return or_out_of_memory(p);
}

void* heap_allocate_aligned(Heap* heap, size_t alignment, size_t size) {
  size_t cls = class_of_aligned(max_of(alignment, kBlockAlign), size);
  if (cls != kClassCount) return or_out_of_memory(allocate_class(heap, cls, nullptr));
  if (size > kMaxRequestBytes) return or_out_of_memory(nullptr);
  return or_out_of_memory(take_large(heap, size | (size == 0), max_of(alignment, kSliceBytes), nullptr,
                                     __builtin_return_address(0)));
}

void* heap_reallocate(Heap* heap, void* p, size_t size) {
  if (EBB_UNLIKELY(size > kMaxRequestBytes)) return or_out_of_memory(nullptr);
  Page* page = page_of_block(p);
  if (EBB_UNLIKELY(page == nullptr)) {
    report_invalid_pointer("realloc", p);
    return or_out_of_memory(nullptr);
  }
  bool is_large = page->kind == SliceKind::kLarge;
  size_t usable = is_large ? page->large.usable : page->block_bytes;
  if ((!is_large || usable <= kLargestBlock) && stays_in_block(usable, size)) return p;  // a sample may be that small
  if (is_large && size > kLargestBlock) {
    void* resized = large_resize(page, size);
    if (resized != nullptr) return resized;
  }
  void* to = heap_allocate_slow(heap, size);
  // A block that was to shrink stays where it is: that is no failure.
  if (EBB_UNLIKELY(to == nullptr)) return size <= usable ? p : nullptr;
  memcpy(to, p, min_of(usable, usable_bytes(to)));
  release(p);
  return to;
}

Heap* heap_holding(const void* p) {
  Slice* span = find_span(p);
  return span == nullptr ? nullptr : as_page(span)->heap.load(std::memory_order_relaxed);
}

}  // namespace ebb
