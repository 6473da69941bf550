// ebb_arena_* and ebb_subproc_*: argument checks around arena/adopted.h and heap/subprocess.h. Any thread.
#include <errno.h>

#include <cstring>

#include "arena/adopted.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/variant.h"
#include "ebb/ebb.h"
#include "heap/heap_lifetime.h"
#include "heap/heap_survey.h"
#include "heap/misuse.h"
#include "heap/process.h"
#include "heap/subprocess.h"

using namespace ebb;

namespace {

constexpr unsigned kKnownFlags = EBB_ARENA_COMMITTED | EBB_ARENA_PINNED | EBB_ARENA_ZERO | EBB_ARENA_EXCLUSIVE;
constexpr unsigned kNodeShift = 16;

ProgramArena* as_arena(ebb_arena_t arena) { return reinterpret_cast<ProgramArena*>(arena); }
ebb_arena_t as_handle(ProgramArena* arena) { return reinterpret_cast<ebb_arena_t>(arena); }
Subprocess* as_subprocess(ebb_subproc_t* subproc) { return reinterpret_cast<Subprocess*>(subproc); }

EBB_COLD bool fail(int error) {
  errno = error;
  return false;
}

// A call that makes no sense: debug and secure builds stop, others refuse it.
EBB_COLD bool refuse(const char* operation, const void* handle, const char* reason) {
  if constexpr (kReportsMisuse) report_heap_misuse(operation, handle, reason);
  return fail(EINVAL);
}

bool read_flags(unsigned flags, ArenaTraits* traits) {
  if ((flags & ((1u << kNodeShift) - 1) & ~kKnownFlags) != 0) return false;
  traits->committed = (flags & EBB_ARENA_COMMITTED) != 0;
  traits->pinned = (flags & EBB_ARENA_PINNED) != 0;
  traits->zero = (flags & EBB_ARENA_ZERO) != 0;
  traits->exclusive = (flags & EBB_ARENA_EXCLUSIVE) != 0;
  traits->numa_node = static_cast<int>(flags >> kNodeShift) - 1;
  traits->group = traits->owner = subprocess_current();
  return true;
}

bool check(const char* operation, ebb_subproc_t* subproc) {
  if (EBB_LIKELY(subprocess_is_alive(subproc))) return true;
  return refuse(operation, subproc, "it is no live sub-process");
}

}  // namespace

extern "C" {

EBB_EXPORT bool ebb_arena_reserve(size_t size, unsigned flags, ebb_arena_t* out) {
  ArenaTraits traits;
  if (out == nullptr || !read_flags(flags, &traits)) return fail(EINVAL);
  ProgramArena* arena = process_start() ? arena_reserve(size, traits) : nullptr;
  if (arena == nullptr) return fail(traits.numa_node > 0 ? EINVAL : ENOMEM);
  *out = as_handle(arena);
  return true;
}

EBB_EXPORT bool ebb_arena_adopt(void* start, size_t size, unsigned flags, ebb_arena_t* out) {
  ArenaTraits traits;
  if (out == nullptr || !read_flags(flags, &traits)) return fail(EINVAL);
  if (!process_start()) return fail(ENOMEM);
  ProgramArena* arena = arena_adopt(start, size, traits);
  if (arena == nullptr) return fail(arena_is_adoptable(start, size) ? ENOMEM : EINVAL);
  *out = as_handle(arena);
  return true;
}

EBB_EXPORT void* ebb_arena_area(ebb_arena_t arena, size_t* size) {
  bool alive = arena_is_alive(arena);
  if (size != nullptr) *size = alive ? as_arena(arena)->area_bytes : 0;
  return alive ? as_arena(arena)->area_start : nullptr;
}

EBB_EXPORT bool ebb_arena_contains(ebb_arena_t arena, const void* p) {
  return arena_is_alive(arena) && as_arena(arena)->contains_address(p);
}

EBB_EXPORT bool ebb_arena_release(ebb_arena_t arena) {
  if (!arena_is_alive(arena)) return refuse("release of an arena", arena, "it is no live arena");
  return arena_release(as_arena(arena)) || fail(EBUSY);
}

EBB_EXPORT ebb_heap_t* ebb_heap_new_in(ebb_arena_t handle) {
  ProgramArena* arena = as_arena(handle);
  if (!arena_is_alive(handle) || arena->traits.owner != subprocess_current() || !arena_hold(arena)) {
    refuse("making of a heap in an arena", handle, "it is no live arena of this sub-process");
    return nullptr;
  }
  Heap* heap = heap_new(subprocess_current(), {nullptr, arena});
  if (EBB_UNLIKELY(heap == nullptr)) {
    arena_let_go(arena);
    errno = ENOMEM;
  }
  return reinterpret_cast<ebb_heap_t*>(heap);
}

EBB_EXPORT ebb_subproc_t* ebb_subproc_new(void) {
  Subprocess* subprocess = process_start() ? subprocess_new() : nullptr;
  if (EBB_UNLIKELY(subprocess == nullptr)) errno = ENOMEM;
  return reinterpret_cast<ebb_subproc_t*>(subprocess);
}

EBB_EXPORT bool ebb_subproc_enter(ebb_subproc_t* subproc) {
  if (subproc != nullptr && !check("entering of a sub-process", subproc)) return false;
  return subprocess_enter(as_subprocess(subproc)) || fail(ENOMEM);
}

EBB_EXPORT ebb_subproc_t* ebb_subproc_current(void) { return reinterpret_cast<ebb_subproc_t*>(subprocess_current()); }

EBB_EXPORT bool ebb_subproc_destroy(ebb_subproc_t* subproc) {
  if (!check("destroy of a sub-process", subproc)) return false;
  return subprocess_destroy(as_subprocess(subproc)) || fail(EBUSY);
}

EBB_EXPORT bool ebb_subproc_stats_get(ebb_subproc_t* subproc, ebb_heap_stats_t* stats, size_t size) {
  if (!check("statistics of a sub-process", subproc)) return false;
  if (stats == nullptr || size == 0) return fail(EINVAL);
  Subprocess* subprocess = as_subprocess(subproc);
  FirstClassHeap* main = subprocess->main.load(std::memory_order_relaxed);
  ebb_heap_stats_t sum = {};
  HeapCursor cursor;
  uint64_t serial;
  while (FirstClassHeap* heap = cursor.next(&serial)) {
    if (heap->subprocess != subprocess) continue;
    ebb_heap_stats_t one;
    if (!ebb_heap_stats_get(reinterpret_cast<ebb_heap_t*>(static_cast<Heap*>(heap)), &one, sizeof(one))) continue;
    sum.live_bytes += one.live_bytes;
    sum.live_blocks += one.live_blocks;
    sum.span_bytes += one.span_bytes;
    sum.page_count += one.page_count;
    sum.large_count += one.large_count;
    sum.thread_count += one.thread_count;
    sum.metadata_bytes += one.metadata_bytes;
    if (heap != main) continue;
    sum.charged_bytes = one.charged_bytes;
    sum.limit_bytes = one.limit_bytes;
  }
  memset(stats, 0, size);
  memcpy(stats, &sum, min_of(size, sizeof(sum)));
  return true;
}

}  // extern "C"
