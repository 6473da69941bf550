#include "arena/cage.h"

#include <cstring>
#include <new>

#include "arena/address_map.h"
#include "arena/adopted.h"
#include "arena/arena_list.h"
#include "base/bits.h"
#include "config/options.h"
#include "os/os.h"
#include "stats/counters.h"

namespace ebb {

constinit Cage g_cage{nullptr, 0};

constinit Arena g_cage_arena;

namespace {

// Bytes in front of the first usable slice of a reservation of `slices`: table, ages and `extra`.
size_t header_bytes(size_t slices, size_t extra) {
  return align_up((slices + 1) * kPageStride, 64 * KiB) + align_up(slices + extra, kSliceBytes);
}

Arena::Range range_of(char* start, size_t bytes, size_t extra) {
  size_t slices = bytes >> kSliceShift;
  char* ages = start + align_up((slices + 1) * kPageStride, 64 * KiB);
  return {start,
          start,
          reinterpret_cast<uint8_t*>(ages),
          static_cast<uint32_t>(header_bytes(slices, extra) >> kSliceShift),
          static_cast<uint32_t>(slices),
          false,
          true,
          false,
          false,
          false};
}

// Address space to reserve at first: several times the machine's memory, so that fragmentation of addresses
// never matters; half of what a limit leaves, as stacks and libraries need theirs.
size_t wished_bytes(const os::Limits& limits) {
  constexpr size_t kLeast = 64 * GiB, kMost = 4096 * GiB;
  size_t asked = static_cast<size_t>(option(Option::k_reserve_gib)) * GiB;
  size_t wish = asked != 0 ? asked : min_of(max_of(size_t{1} << (floor_log2(limits.physical_bytes) + 4), kLeast), kMost);
  if (limits.address_space_bytes != SIZE_MAX) wish = min_of(wish, limits.address_space_bytes / 2);
  return align_down(wish, kSliceBytes);
}

void apply_huge_page_policy(char* start, size_t bytes) {
  int64_t policy = option(Option::k_thp);
  if (policy == word::thp_off) os::advise_huge_pages(start, bytes, false);
  if (policy == word::thp_full) os::advise_huge_pages(start, bytes, true);
}

// Reserves a further region with at least `slices` in one piece and takes them from it.
Slice* take_from_new_region(SliceCount slices, size_t alignment, bool* zero) {
  LockGuard guard(g_region_lock);
  os::Limits limits = os::limits();
  size_t need = slices.bytes() + (alignment > kSliceBytes ? alignment : 0);
  need += header_bytes(need >> kSliceShift, sizeof(Arena)) + 4 * kSliceBytes;
  need += header_bytes(need >> kSliceShift, sizeof(Arena));
  size_t wish = limits.address_space_bytes == SIZE_MAX ? 64 * GiB : limits.address_space_bytes / 2;
  char* start = nullptr;
  size_t bytes = align_up(max_of(need, wish), kSliceBytes);
  while ((start = static_cast<char*>(os::reserve(bytes, kSliceBytes))) == nullptr && bytes > need) {
    bytes = align_up(max_of(need, bytes / 2), kSliceBytes);
  }
  if (start == nullptr) return nullptr;
  apply_huge_page_policy(start, bytes);
  Arena::Range range = range_of(start, bytes, sizeof(Arena));
  char* place = reinterpret_cast<char*>(range.ages) + align_up(bytes >> kSliceShift, kCacheLine);
  char* page = reinterpret_cast<char*>(align_down(reinterpret_cast<uintptr_t>(place), os::page_bytes()));
  size_t length = static_cast<size_t>(place - page) + sizeof(Arena);
  if (!os::commit(page, align_up(length, os::page_bytes()))) {
    os::release(start, bytes);
    return nullptr;
  }
  Arena* arena = new (place) Arena();
  if (!arena_publish_locked(arena, range, nullptr, true)) {
    os::release(start, bytes);
    return nullptr;
  }
  return arena->take(slices, alignment, zero);
}

using Take = Slice* (Arena::*)(SliceCount, size_t, bool*);

// From the arenas of a group, or of everybody.
Slice* take_from_group(ArenaGroup group, SliceCount slices, size_t alignment, bool* zero, Take take = &Arena::take) {
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    if (arena->group() != group) continue;
    Slice* span = (arena->*take)(slices, alignment, zero);
    if (span != nullptr) return span;
  }
  return nullptr;
}

}  // namespace

bool cage_initialise() {
  constexpr size_t kLeast = 4 * MiB;
  size_t bytes = wished_bytes(os::limits());
  char* start = nullptr;
  while (bytes >= kLeast && (start = static_cast<char*>(os::reserve(bytes, kSliceBytes))) == nullptr) {
    bytes = align_down(bytes / 2, kSliceBytes);
  }
  if (start == nullptr) return false;
  apply_huge_page_policy(start, bytes);
  {
    LockGuard guard(g_region_lock);
    if (!arena_publish_locked(&g_cage_arena, range_of(start, bytes, 0), nullptr, false)) return false;
  }
  g_cage = {start, bytes};
  return true;
}

Slice* find_slice(const void* p) {
  uintptr_t offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(g_cage.base);
  if (EBB_LIKELY(offset < g_cage.size)) return cage_slice(offset);
  return address_map_find(reinterpret_cast<uintptr_t>(p));
}

namespace {

using LookUp = Slice* (Arena::*)(const void*) const;

EBB_COLD Slice* look_up_outside(const void* p, LookUp look_up) {
  Arena* arena = address_map_find_arena(reinterpret_cast<uintptr_t>(p));
  if (arena == nullptr) return nullptr;
  LockGuard guard(arena->lookup_lock());
  return (arena->*look_up)(p);
}

}  // namespace

Slice* find_known_slice_outside(const void* p) { return look_up_outside(p, &Arena::slice_holding); }

Slice* find_span(const void* p) {
  uintptr_t offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(g_cage.base);
  return EBB_LIKELY(offset < g_cage.size) ? g_cage_arena.span_holding(p) : look_up_outside(p, &Arena::span_holding);
}

namespace {

EBB_COLD Slice* take_span_slow(SliceCount slices, size_t alignment, bool* zero) {
  Slice* span = take_from_group(nullptr, slices, alignment, zero);
  if (span == nullptr) span = take_from_new_region(slices, alignment, zero);
  if (span != nullptr) return span;
  // Nothing is left but what lies free in pieces, or what other threads have given back meanwhile.
  uint8_t age = begin_forced_purge();
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) arena->purge_all(age);
  span = take_from_group(nullptr, slices, alignment, zero, &Arena::take_waiting);
  if (span == nullptr) count(Counter::k_refused_requests);
  return span;
}

}  // namespace

Slice* take_span(SliceCount slices, size_t alignment, bool* zero) {
  // The cage first: its pages have the fast free.
  Slice* span = g_cage_arena.take(slices, alignment, zero);
  if (EBB_LIKELY(span != nullptr)) return span;
  return take_span_slow(slices, alignment, zero);
}

namespace {

// A sub-process grows by arenas of this size, or more where a single request is larger.
constexpr size_t kGroupArenaBytes = 32 * MiB;

EBB_COLD Slice* take_from_group_slow(ArenaGroup group, SliceCount slices, size_t alignment, bool* zero) {
  ArenaTraits traits;
  traits.group = group;
  traits.owner = group;
  size_t bytes = max_of(slices.bytes() + (alignment > kSliceBytes ? alignment : 0), kGroupArenaBytes);
  // Other threads may use up the new arena at once; the next one is for whoever comes then.
  bool has_grown = arena_reserve(bytes, traits) != nullptr;
  return take_from_group(group, slices, alignment, zero, has_grown ? &Arena::take : &Arena::take_waiting);
}

}  // namespace

Slice* take_span_from(const SpanSource& source, SliceCount slices, size_t alignment, bool* zero) {
  if (EBB_LIKELY(source.is_everybodys())) return take_span(slices, alignment, zero);
  if (source.only != nullptr) {
    Slice* span = source.only->take(slices, alignment, zero);
    return EBB_LIKELY(span != nullptr) ? span : source.only->take_waiting(slices, alignment, zero);
  }
  Slice* span = take_from_group(source.group, slices, alignment, zero);
  return EBB_LIKELY(span != nullptr) ? span : take_from_group_slow(source.group, slices, alignment, zero);
}

void arenas_lock_for_fork() {
  g_region_lock.lock();
  g_purge_step_lock.lock();
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) arena->lock_for_fork();
}

void arenas_unlock_after_fork(bool child) {
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) arena->unlock_after_fork(child);
  g_purge_step_lock.open_after_fork();
  g_region_lock.open_after_fork();
}

}  // namespace ebb
