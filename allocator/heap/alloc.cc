// The slow half of allocation: requests that find no block in the thread's list.
#include "heap/alloc.h"

#include <cstring>

#include "base/bits.h"
#include "base/check.h"
#include "heap/heap.h"
#include "heap/large.h"
#include "heap/misuse.h"
#include "heap/parts.h"
#include "heap/process.h"
#include "heap/refill.h"
#include "heap/sampling.h"
#include "os/os.h"

namespace ebb {
namespace {

// Tells the program that a limited heap has refused a request; nothing is held.
EBB_COLD void report_limit(FirstClassHeap* heap, size_t size) {
  size_t charged = heap->charged_bytes.load(std::memory_order_relaxed);
  size_t limit = heap->limit_bytes.load(std::memory_order_relaxed);
  if (charged <= limit && good_bytes(size) <= limit - charged) return;  // the memory itself was refused
  LimitCallback callback = heap->limit_callback.load(std::memory_order_acquire);
  if (callback != nullptr) callback(heap, good_bytes(size), heap->limit_argument.load(std::memory_order_relaxed));
}

// What the calling thread keeps in reserve in the heap goes back; false when it has no part there.
EBB_COLD bool give_up_reserve(Heap* heap) {
  Thread* thread = thread_self_if_any();
  if (thread == nullptr) return false;
  Gate gate(thread);
  ThreadHeap* part = gate.is_open() ? part_find(thread, heap) : nullptr;
  if (part != nullptr) thread_heap_release(part, false);
  return part != nullptr;
}

bool is_limited(Heap* heap) {
  return !heap->is_main() && first_class(heap)->limit_bytes.load(std::memory_order_relaxed) != SIZE_MAX;
}

// Whether the class, which has no page, may borrow a block of kLendingClass.
EBB_INLINE bool borrows(ThreadHeap* heap, size_t cls) {
  if (cls >= kLendingClass || heap->active[cls] != nullptr || heap->spare[cls] != nullptr) return false;
  if (heap->borrowed[cls] == kBorrowedMost || is_limited(heap->heap)) return false;
  ++heap->borrowed[cls];
  return true;
}

EBB_INLINE Block* pop(ThreadHeap* heap, size_t cls, bool* fresh) {
  if (heap->free[cls] == nullptr && !refill(heap, cls, fresh)) return nullptr;
  Block* block = heap->free[cls];
  heap->free[cls] = block->next;
  return hand_out(block);
}

}  // namespace

void* take_block(Heap* from, size_t cls, bool* fresh) {
  Thread* thread = thread_self_if_any();
  if (EBB_UNLIKELY(thread == nullptr)) thread = thread_self();
  if (EBB_UNLIKELY(thread == nullptr)) return nullptr;
  Block* block = nullptr;
  {
    Gate gate(thread);
    if (EBB_UNLIKELY(!gate.is_open())) return nullptr;
    ThreadHeap* heap = from == nullptr ? thread->current : part_get(thread, from);
    if (EBB_UNLIKELY(heap == nullptr)) return nullptr;
    from = heap->heap;
    if (borrows(heap, cls)) block = pop(heap, kLendingClass, fresh);
    if (EBB_LIKELY(block == nullptr)) block = pop(heap, cls, fresh);
    // There may be no memory for a page of the class, but room in the one that lends.
    if (EBB_UNLIKELY(block == nullptr && cls < kLendingClass && from->is_main())) block = pop(heap, kLendingClass, fresh);
  }
  run_deferred();
  if (EBB_UNLIKELY(block == nullptr && !from->is_main())) report_limit(first_class(from), class_bytes(cls));
  return block;
}

namespace {

EBB_INLINE void* take_large_inline(Heap* heap, size_t size, size_t alignment, bool* zero, const void* caller,
                                   size_t room = 0) {
  if (!process_start()) return nullptr;
  void* p = room != 0 ? large_allocate_with_room(heap, size, room) : nullptr;
  if (p == nullptr) p = large_allocate(heap, size, alignment, zero);
  if (EBB_UNLIKELY(p == nullptr && !heap->is_main() && give_up_reserve(heap))) {
    p = large_allocate(heap, size, alignment, zero);
  }
  if (EBB_UNLIKELY(p == nullptr && !heap->is_main())) report_limit(first_class(heap), size);
  if (sampling_is_on() && p != nullptr) count_large(as_page(find_slice(p)), caller);
  return p;
}

}  // namespace

void* take_large(Heap* heap, size_t size, size_t alignment, bool* zero, const void* caller) {
  return take_large_inline(heap, size, alignment, zero, caller);
}

namespace {

// The last word on a request: errno says why there is no block.
EBB_INLINE void* or_out_of_memory(void* p) {
  if (EBB_UNLIKELY(p == nullptr)) os::set_out_of_memory();
  return p;
}

EBB_NOINLINE void* allocate_more(size_t cls) {
  // The plain build's fast paths jump here and leave no frame, so this is the address in the program.
  if (sampling_is_on()) return or_out_of_memory(take_block_counted(nullptr, cls, nullptr, __builtin_return_address(0)));
  return or_out_of_memory(take_block(nullptr, cls, nullptr));
}

Heap* current_heap() {
  Thread* thread = thread_self_if_any();
  return thread != nullptr ? thread->current->heap : &g_main_heap;
}

EBB_NOINLINE void* allocate_large(size_t size, size_t alignment, bool* zero, const void* caller) {
  return take_large_inline(current_heap(), size, alignment, zero, caller);
}

}  // namespace

void* allocate_with_room(size_t size, size_t room) {
  EBB_ASSERT(size > kLargestBlock);
  return or_out_of_memory(
      take_large_inline(current_heap(), size, kBlockAlign, nullptr, __builtin_return_address(0), room));
}

// The usual way to more blocks, and the only one that needs no gate: in a fork's snapshot of any moment of it
// each block is on one list at most, and countdowns are computed anew there.
void* allocate_empty(size_t cls, ThreadHeap* heap) {
  Page* page = heap->active[cls];  // the shared empty heap has none
  if (EBB_LIKELY(page != nullptr)) {
    Block* block = page->free;
    uint32_t handed_out = static_cast<uint32_t>(page->carved - page->hole_blocks);
    if (EBB_LIKELY(block != nullptr && !is_short_batch(page)) && !sampling_is_on()) {
      page->free = nullptr;
      compiler_barrier();
      page->countdown = handed_out;
      heap->free[cls] = block->next;
      return hand_out(block);
    }
  }
  return allocate_more(cls);
}

void* allocate_slow(size_t size) {
  if (EBB_LIKELY(size <= kLargestBlock)) {
    ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
    size_t cls = medium_class_of(size);
    Block* block = heap->free[cls];
    if (EBB_UNLIKELY(block == nullptr)) return allocate_empty(cls, heap);
    heap->free[cls] = block->next;
    return hand_out(block);
  }
  return or_out_of_memory(allocate_large(size, kBlockAlign, nullptr, __builtin_return_address(0)));
}

void* allocate_zeroed_slow(size_t size) {
  if (size > kLargestBlock) {
    bool zero = false;
    void* p = allocate_large(size, kBlockAlign, &zero, __builtin_return_address(0));
    if (p != nullptr && !zero) large_clear(p, size);
    return or_out_of_memory(p);
  }
  ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
  size_t cls = medium_class_of(size);
  Block* block = heap->free[cls];
  if (block != nullptr) {
    heap->free[cls] = block->next;
    return memset(static_cast<void*>(hand_out(block)), 0, size);
  }
  bool fresh = false;
  void* p = sampling_is_on() ? take_block_counted(nullptr, cls, &fresh, __builtin_return_address(0))
                             : take_block(nullptr, cls, &fresh);
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
  void* p = allocate_aligned_listed(alignment, size);
  return EBB_LIKELY(p != nullptr) ? p : allocate_aligned_slow(alignment, size);
}

void* allocate_aligned_slow(size_t alignment, size_t size) {
  alignment = max_of(alignment, kBlockAlign);
  size_t cls = class_of_aligned(alignment, size);
  if (EBB_LIKELY(cls != kClassCount)) {
    ThreadHeap* heap = const_cast<ThreadHeap*>(tls_heap);
    Block* block = heap->free[cls];
    if (EBB_LIKELY(block == nullptr)) return allocate_empty(cls, heap);
    heap->free[cls] = block->next;
    return hand_out(block);
  }
  if (size > kMaxRequestBytes) return or_out_of_memory(nullptr);
  return or_out_of_memory(
      allocate_large(size | (size == 0), max_of(alignment, kSliceBytes), nullptr, __builtin_return_address(0)));
}

size_t good_bytes(size_t size) {
  if (size > kMaxRequestBytes - kSliceBytes) return size;
  return size <= kLargestBlock ? class_bytes(class_of(size)) : large_usable(size);
}

}  // namespace ebb
