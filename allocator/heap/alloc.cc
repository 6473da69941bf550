// The slow half of allocation: requests that find no block in the thread's list.
#include "heap/alloc.h"

#include <cstring>

#include "base/bits.h"
#include "heap/heap.h"
#include "heap/large.h"
#include "heap/misuse.h"
#include "heap/process.h"
#include "heap/refill.h"
#include "os/os.h"

namespace ebb {
namespace {

// Takes a block of class `cls` from the calling thread's current heap. `fresh` as in refill().
void* take_block(size_t cls, bool* fresh) {
  Thread* thread = thread_self();
  if (EBB_UNLIKELY(thread == nullptr)) return nullptr;
  Block* block;
  {
    Gate gate(thread);
    if (EBB_UNLIKELY(!gate.is_open())) return nullptr;
    ThreadHeap* heap = thread->current;
    if (heap->free[cls] == nullptr) {
      if (EBB_UNLIKELY(!refill(heap, cls, fresh))) return nullptr;
    }
    block = heap->free[cls];
    heap->free[cls] = block->next;
  }
  run_deferred();
  return block;
}

// The last word on a request: errno says why there is no block.
EBB_INLINE void* or_out_of_memory(void* p) {
  if (EBB_UNLIKELY(p == nullptr)) os::set_out_of_memory();
  return p;
}

EBB_NOINLINE void* allocate_more(size_t cls) { return or_out_of_memory(take_block(cls, nullptr)); }

EBB_NOINLINE void* allocate_large(size_t size, size_t alignment, bool* zero) {
  if (!process_start()) return nullptr;
  Thread* thread = thread_self_if_any();
  Heap* heap = thread != nullptr ? thread->current->heap : &g_main_heap;
  return large_allocate(heap, size, alignment, zero);
}

}  // namespace

// The usual way to more blocks, and the only one that needs no gate: in a fork's snapshot of any moment of it
// each block is on one list at most, and countdowns are computed anew there.
void* allocate_empty(size_t cls, ThreadHeap* heap) {
  Page* page = heap->active[cls];  // the shared empty heap has none
  if (EBB_LIKELY(page != nullptr)) {
    Block* block = page->free;
    if (EBB_LIKELY(block != nullptr && !is_short_batch(page))) {
      page->free = nullptr;
      compiler_barrier();
      page->countdown = static_cast<uint32_t>(page->carved - page->hole_blocks);
      heap->free[cls] = block->next;
      return block;
    }
  }
  return allocate_more(cls);
}

void* allocate_slow(size_t size) {
  if (EBB_LIKELY(size <= kLargestBlock)) {
    ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
    size_t cls = class_of(size);
    Block* block = heap->free[cls];
    if (EBB_UNLIKELY(block == nullptr)) return allocate_empty(cls, heap);
    heap->free[cls] = block->next;
    return block;
  }
  return or_out_of_memory(allocate_large(size, kBlockAlign, nullptr));
}

void* allocate_zeroed_slow(size_t size) {
  if (size > kLargestBlock) {
    bool zero = false;
    void* p = allocate_large(size, kBlockAlign, &zero);
    if (p != nullptr && !zero && !large_clear(as_page(find_slice(p)), size)) memset(p, 0, size);
    return or_out_of_memory(p);
  }
  ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
  size_t cls = class_of(size);
  Block* block = heap->free[cls];
  if (block != nullptr) {
    heap->free[cls] = block->next;
    return memset(block, 0, size);
  }
  bool fresh = false;
  void* p = take_block(cls, &fresh);
  if (p != nullptr) memset(p, 0, fresh ? min_of(size, sizeof(Block)) : size);
  return or_out_of_memory(p);
}

void* allocate_zeroed(size_t size) {
  if (size > kTableMost) return allocate_zeroed_slow(size);
  void* p = allocate(size);
  if (EBB_LIKELY(p != nullptr)) memset(p, 0, size);
  return p;
}

void* allocate_aligned(size_t alignment, size_t size) {
  if (alignment <= kBlockAlign) return allocate(size);
  size_t cls = class_of_aligned(alignment, size);
  if (EBB_LIKELY(cls != kClassCount)) {
    ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
    Block* block = heap->free[cls];
    if (EBB_UNLIKELY(block == nullptr)) return allocate_empty(cls, heap);
    heap->free[cls] = block->next;
    return block;
  }
  if (size > kMaxRequestBytes) return or_out_of_memory(nullptr);
  return or_out_of_memory(allocate_large(size | (size == 0), max_of(alignment, kSliceBytes), nullptr));
}

size_t good_bytes(size_t size) {
  if (size > kMaxRequestBytes - kSliceBytes) return size;
  return size <= kLargestBlock ? class_bytes(class_of(size)) : large_usable(size);
}

}  // namespace ebb
