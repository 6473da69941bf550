// ebb_heap_*: argument checks around heap/. Any thread. Whether a handle is a live heap's is found out for any address,
// but for a malloc that a heap can serve at once.
#include <errno.h>

#include <cstring>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/variant.h"
#include "ebb/ebb.h"
#include "heap/alloc.h"
#include "heap/heap_blocks.h"
#include "heap/heap_lifetime.h"
#include "heap/heap_survey.h"
#include "heap/misuse.h"
#include "heap/process.h"
#include "heap/subprocess.h"
#include "scavenger/collect.h"

using namespace ebb;

namespace {

Heap* as_heap(ebb_heap_t* heap) { return reinterpret_cast<Heap*>(heap); }
const Heap* as_heap(const ebb_heap_t* heap) { return reinterpret_cast<const Heap*>(heap); }
ebb_heap_t* as_handle(Heap* heap) { return reinterpret_cast<ebb_heap_t*>(heap); }

EBB_COLD bool fail(int error) {
  errno = error;
  return false;
}

// A call that makes no sense: debug and secure builds stop, others refuse it.
EBB_COLD bool refuse(const char* operation, const void* heap, const char* reason) {
  if constexpr (kReportsMisuse) report_heap_misuse(operation, heap, reason);
  return fail(EINVAL);
}

bool is_heap(const Heap* heap) {
  return heap == &g_main_heap || heap_is_alive(heap);
}

EBB_COLD bool refuse_handle(const char* operation, const ebb_heap_t* heap) {
  if (heap == nullptr) return refuse(operation, heap, "it is NULL");
  return refuse(operation, heap, is_heap_structure(heap) ? "it is no live heap: it was ended before" : "it is no heap");
}

// Whether the handle names a heap; if not, the call has been refused.
EBB_INLINE bool check(const char* operation, const ebb_heap_t* heap) {
  return EBB_LIKELY(is_heap(as_heap(heap))) || refuse_handle(operation, heap);
}

// Whether the heap may end; if not, the call has been refused. The calling thread does not allocate from it by
// default any more.
bool prepare_end(const char* operation, ebb_heap_t* handle) {
  if (!check(operation, handle)) return false;
  Heap* heap = as_heap(handle);
  if (heap->is_main()) return refuse(operation, heap, "it is the main heap, which never ends");
  if (first_class(heap)->inherits) return refuse(operation, heap, "it is the main heap of a sub-process; destroy that");
  Thread* thread = thread_self_if_any();
  if (thread != nullptr && thread->current->heap == heap) default_heap_set(main_heap_of(thread->subprocess));
  return true;
}

// A malloc that the heap could not serve at once. Its handle was read there, so this asks no more than whether it was
// ended; the rest would cost a new heap's first block as much as finding memory for it.
EBB_NOINLINE void* allocate_checked(ebb_heap_t* handle, size_t size) {
  Heap* heap = as_heap(handle);
  auto was_ended = [heap] { return !heap->is_main() && first_class(heap)->serial.load(std::memory_order_relaxed) == 0; };
  if (EBB_LIKELY(heap != nullptr && !was_ended())) return heap_allocate_slow(heap, size);
  refuse_handle("allocation", handle);
  return nullptr;
}

constexpr const char* kInUse = "another thread's default heap can't end, nor any from a signal handler in the allocator";

bool multiply_overflows(size_t count, size_t size, size_t* product) {
  return __builtin_mul_overflow(count, size, product);
}

}  // namespace

extern "C" {

EBB_EXPORT ebb_heap_t* ebb_heap_new(void) {
  Subprocess* subprocess = subprocess_current();
  Heap* heap = heap_new(subprocess, {subprocess, nullptr});
  if (EBB_UNLIKELY(heap == nullptr)) errno = ENOMEM;
  return as_handle(heap);
}

EBB_EXPORT ebb_heap_t* ebb_heap_main(void) { return as_handle(main_heap_of(subprocess_current())); }

EBB_EXPORT void* ebb_heap_malloc(ebb_heap_t* handle, size_t size) {
  Heap* heap = as_heap(handle);
  if (EBB_LIKELY(heap != nullptr)) {
    void* p = heap_allocate_listed(heap, size);
    if (EBB_LIKELY(p != nullptr)) return p;
  }
  return allocate_checked(handle, size);
}

EBB_EXPORT void* ebb_heap_calloc(ebb_heap_t* heap, size_t count, size_t size) {
  size_t bytes;
  if (EBB_UNLIKELY(multiply_overflows(count, size, &bytes))) {
    errno = ENOMEM;
    return nullptr;
  }
  return check("allocation", heap) ? heap_allocate_zeroed(as_heap(heap), bytes) : nullptr;
}

EBB_EXPORT void* ebb_heap_aligned_alloc(ebb_heap_t* heap, size_t alignment, size_t size) {
  if (EBB_UNLIKELY(!is_power_of_two(alignment))) {
    errno = EINVAL;
    return nullptr;
  }
  return check("allocation", heap) ? heap_allocate_aligned(as_heap(heap), alignment, size) : nullptr;
}

EBB_EXPORT char* ebb_heap_strdup(ebb_heap_t* heap, const char* text) {
  size_t bytes = strlen(text) + 1;
  char* copy = static_cast<char*>(ebb_heap_malloc(heap, bytes));
  if (EBB_LIKELY(copy != nullptr)) memcpy(copy, text, bytes);
  return copy;
}

EBB_EXPORT void* ebb_heap_realloc(ebb_heap_t* handle, void* p, size_t size) {
  if (p == nullptr) return ebb_heap_malloc(handle, size);
  if (!check("realloc", handle)) return nullptr;
  if (EBB_UNLIKELY(heap_holding(p) != as_heap(handle))) {
    if constexpr (kReportsMisuse) report_foreign_block("realloc", p, handle);
    errno = EINVAL;
    return nullptr;
  }
  if (size == 0) {
    release(p);
    return nullptr;
  }
  return heap_reallocate(as_heap(handle), p, size);
}

EBB_EXPORT ebb_heap_t* ebb_heap_of(const void* p) { return as_handle(heap_holding(p)); }

EBB_EXPORT bool ebb_heap_contains(const ebb_heap_t* heap, const void* p) {
  return check("contains", heap) && heap_holding(p) == as_heap(heap);
}

EBB_EXPORT bool ebb_is_owned(const void* p) { return heap_holding(p) != nullptr; }

EBB_EXPORT void ebb_heap_collect(ebb_heap_t* heap, bool force) {
  if (!check("collect", heap)) return;
  if (Thread* thread = thread_self_if_any()) {
    Gate gate(thread);
    ThreadHeap* part = gate.is_open() ? part_find(thread, as_heap(heap)) : nullptr;
    if (part != nullptr) thread_heap_release(part, false);
  }
  if (force) collect(true);
}

EBB_EXPORT bool ebb_heap_delete(ebb_heap_t* handle) {
  if (!prepare_end("delete", handle)) return false;
  FirstClassHeap* heap = first_class(as_heap(handle));
  return heap_delete(heap, main_heap_of(heap->subprocess)) || refuse("delete", heap, kInUse);
}

EBB_EXPORT bool ebb_heap_destroy(ebb_heap_t* handle) {
  if (!prepare_end("destroy", handle)) return false;
  FirstClassHeap* heap = first_class(as_heap(handle));
  return heap_destroy(heap) || refuse("destroy", heap, kInUse);
}

EBB_EXPORT ebb_heap_t* ebb_heap_set_default(ebb_heap_t* heap) {
  if (!check("set_default", heap)) return nullptr;
  Heap* before = default_heap_set(as_heap(heap));
  if (before == nullptr) errno = ENOMEM;
  return as_handle(before);
}

EBB_EXPORT bool ebb_heap_set_limit(ebb_heap_t* handle, size_t bytes, ebb_heap_limit_reached* reached, void* arg) {
  if (!check("set_limit", handle)) return false;
  if (as_heap(handle)->is_main()) return refuse("set_limit", handle, "the main heap has no limit");
  FirstClassHeap* heap = first_class(as_heap(handle));
  heap->limit_argument.store(arg, std::memory_order_relaxed);
  heap->limit_callback.store(reinterpret_cast<LimitCallback>(reached), std::memory_order_release);
  heap->limit_bytes.store(bytes == 0 ? SIZE_MAX : bytes, std::memory_order_relaxed);
  return true;
}

EBB_EXPORT bool ebb_heap_stats_get(ebb_heap_t* handle, ebb_heap_stats_t* stats, size_t size) {
  if (!check("stats_get", handle)) return false;
  if (stats == nullptr || size == 0) return fail(EINVAL);
  Heap* heap = as_heap(handle);
  HeapUse use = heap_use(heap);
  ebb_heap_stats_t full = {};
  full.live_bytes = use.live_bytes;
  full.live_blocks = use.live_blocks;
  full.span_bytes = use.span_bytes;
  full.page_count = use.page_count;
  full.large_count = use.large_count;
  full.thread_count = use.thread_count;
  if (!heap->is_main()) {
    size_t limit = first_class(heap)->limit_bytes.load(std::memory_order_relaxed);
    full.charged_bytes = first_class(heap)->charged_bytes.load(std::memory_order_relaxed);
    full.limit_bytes = limit == SIZE_MAX ? 0 : limit;
    // The first thread's part is inside.
    full.metadata_bytes = sizeof(FirstClassHeap) + (use.thread_count > 1 ? use.thread_count - 1 : 0) * sizeof(ThreadHeap);
  }
  memset(stats, 0, size);
  memcpy(stats, &full, min_of(size, sizeof(full)));
  return true;
}

EBB_EXPORT bool ebb_heap_visit(ebb_heap_t* handle, ebb_heap_visitor* visitor, void* arg) {
  if (!check("visit", handle)) return false;
  if (visitor == nullptr) return fail(EINVAL);
  struct Visit {
    ebb_heap_t* heap;
    ebb_heap_visitor* visitor;
    void* argument;
  } visit = {handle, visitor, arg};
  auto forward = [](const HeapArea& area, void* block, void* argument) {
    Visit* to = static_cast<Visit*>(argument);
    ebb_heap_area_t public_area = {area.start, area.bytes, area.block_bytes, area.live_blocks};
    return to->visitor(to->heap, &public_area, block, to->argument);
  };
  return heap_visit(as_heap(handle), forward, &visit);
}

}  // extern "C"
