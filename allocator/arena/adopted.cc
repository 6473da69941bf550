#include "arena/adopted.h"

#include <cstring>
#include <new>

#include "arena/address_map.h"
#include "arena/arena_list.h"
#include "arena/cage.h"
#include "base/bits.h"
#include "os/os.h"

namespace ebb {
namespace {

// All structures, also of released arenas: those are used again. Guarded by g_region_lock.
constinit ProgramArena* g_program_arenas = nullptr;

// A structure for an arena that is about to begin, taken out of use by `alive`.
ProgramArena* take_structure() {
  {
    LockGuard guard(g_region_lock);
    for (ProgramArena* arena = g_program_arenas; arena != nullptr; arena = arena->next_program) {
      if (arena->alive.load(std::memory_order_relaxed) || arena->area_start != nullptr) continue;
      arena->area_start = reinterpret_cast<char*>(arena);  // spoken for
      return arena;
    }
  }
  void* memory = meta_take(sizeof(ProgramArena));
  if (memory == nullptr) return nullptr;
  ProgramArena* arena = new (memory) ProgramArena();
  arena->area_start = reinterpret_cast<char*>(arena);
  LockGuard guard(g_region_lock);
  arena->next_program = g_program_arenas;
  g_program_arenas = arena;
  return arena;
}

ArenaGroup group_of(const ProgramArena* arena, const ArenaTraits& traits) {
  return traits.exclusive ? arena : traits.group;
}

// Gives the memory of an address range back, a bounded part at a time, so that a fork never waits long. False when
// the OS refused a part.
bool purge_range(char* start, size_t bytes) {
  bool all = true;
  for (size_t done = 0; done < bytes;) {
    size_t part = min_of(bytes - done, kPurgeStep.bytes());
    LockGuard step(g_purge_step_lock);
    all &= os::purge(start + done, part);
    done += part;
  }
  return all;
}

// Lets the arena begin with this range; false when there are too many arenas.
bool begin(ProgramArena* arena, const Arena::Range& range, const ArenaTraits& traits, Slice* outer, char* area,
           size_t area_bytes) {
  LockGuard guard(g_region_lock);
  arena->traits = traits;
  arena->outer = outer;
  if (!arena_publish_locked(arena, range, group_of(arena, traits), outer == nullptr)) {
    arena->area_start = nullptr;
    return false;
  }
  arena->area_bytes = area_bytes;
  arena->area_start = area;
  arena->alive.store(true, std::memory_order_release);
  return true;
}

void abandon(ProgramArena* arena) {
  LockGuard guard(g_region_lock);
  arena->area_start = nullptr;
}

}  // namespace

ProgramArena* arena_reserve(size_t bytes, const ArenaTraits& traits) {
  constexpr SliceCount kGuard{1};
  if (bytes > kMaxRequestBytes / 2 || (bytes >> kSliceShift) > UINT32_MAX / 4) return nullptr;
  SliceCount slices = SliceCount::from_bytes_up(max_of(bytes, kLeastArenaBytes));
  ProgramArena* arena = take_structure();
  if (arena == nullptr) return nullptr;
  bool zero = false;
  Slice* span = take_span({slices.value + 2 * kGuard.value}, kSliceBytes, &zero);
  if (span == nullptr) {
    abandon(arena);
    return nullptr;
  }
  span->kind = SliceKind::kArena;
  Arena* around = arena_of(span);
  Arena::Range range = around->inside(span, kGuard);
  char* area = span->start + kGuard.bytes();
  // The guards, too: nobody touches them, so the whole span is clean again when it is given back.
  if (!zero) zero = purge_range(span->start, slices.bytes() + 2 * kGuard.bytes());
  arena->guards_clean = zero;
  range.zero = zero;
  range.pinned = traits.pinned;
  bool bound = traits.numa_node < 0 || os::bind_to_node(area, slices.bytes(), traits.numa_node);
  if (!bound || !begin(arena, range, traits, span, area, slices.bytes())) {
    abandon(arena);
    around->give(span, zero);
    return nullptr;
  }
  return arena;
}

namespace {

// Where an adopted range's metadata stands, and which slices it serves.
struct Layout {
  size_t table_bytes, ages_bytes;
  uint32_t low, high;  // counted from the multiple of 64 KiB at or below the start
};

Layout layout_of(char* start, size_t bytes) {
  uintptr_t address = reinterpret_cast<uintptr_t>(start);
  uintptr_t origin = align_down(address, kSliceBytes);
  Layout layout;
  layout.high = static_cast<uint32_t>((address + bytes - origin) >> kSliceShift);
  layout.table_bytes = align_up((size_t{layout.high} + 1) * kPageStride, os::page_bytes());
  layout.ages_bytes = align_up(size_t{layout.high} + 1, os::page_bytes());
  uintptr_t usable = align_up(address + layout.table_bytes + layout.ages_bytes, kSliceBytes);
  layout.low = static_cast<uint32_t>((usable - origin) >> kSliceShift);
  return layout;
}

bool is_usable(char* start, size_t bytes) {
  uintptr_t address = reinterpret_cast<uintptr_t>(start);
  if (address == 0 || address % os::page_bytes() != 0 || bytes % os::page_bytes() != 0) return false;
  return bytes >= kLeastArenaBytes && bytes <= kMaxRequestBytes / 2 && address + bytes > address;
}

bool overlaps_locked(uintptr_t begin, uintptr_t end) {
  uintptr_t cage = reinterpret_cast<uintptr_t>(g_cage.base);
  if (begin < cage + g_cage.size && cage < end) return true;
  if (address_map_overlaps_locked(begin, end)) return true;
  for (ProgramArena* arena = g_program_arenas; arena != nullptr; arena = arena->next_program) {
    uintptr_t area = reinterpret_cast<uintptr_t>(arena->area_start);
    if (arena->alive.load(std::memory_order_relaxed) && begin < area + arena->area_bytes && area < end) return true;
  }
  return false;
}

}  // namespace

bool arena_is_adoptable(void* memory, size_t bytes) {
  if (!is_usable(static_cast<char*>(memory), bytes)) return false;
  uintptr_t address = reinterpret_cast<uintptr_t>(memory);
  LockGuard guard(g_region_lock);
  return !overlaps_locked(address, address + bytes);
}

ProgramArena* arena_adopt(void* memory, size_t bytes, const ArenaTraits& traits) {
  if (!arena_is_adoptable(memory, bytes)) return nullptr;
  char* start = static_cast<char*>(memory);
  uintptr_t address = reinterpret_cast<uintptr_t>(start);
  Layout layout = layout_of(start, bytes);
  size_t header = layout.table_bytes + layout.ages_bytes;
  // What is to become accessible step by step must be zero then, or calloc could not tell.
  bool lazily = !traits.committed && traits.zero;
  if (!traits.committed && !os::commit(start, lazily ? header : bytes)) return nullptr;
  if (traits.numa_node >= 0 && !os::bind_to_node(start, bytes, traits.numa_node)) return nullptr;
  if (!traits.zero) memset(start, 0, header);
  ProgramArena* arena = take_structure();
  if (arena == nullptr) return nullptr;
  Arena::Range range{};
  range.table = start;
  range.memory = reinterpret_cast<char*>(align_down(address, kSliceBytes));
  range.ages = reinterpret_cast<uint8_t*>(start) + layout.table_bytes;
  range.low = layout.low;
  range.high = layout.high;
  range.committed = !lazily;
  range.zero = traits.zero;
  range.pinned = traits.pinned;
  range.adopted = true;
  return begin(arena, range, traits, nullptr, start, bytes) ? arena : nullptr;
}

// The structures stand in memory of the allocator's own, and nothing else there is in the table of arenas.
bool arena_is_alive(const void* p) {
  const Slice* slice = find_known_slice(p);
  if (slice == nullptr || slice->kind != SliceKind::kMeta) return false;
  if (reinterpret_cast<uintptr_t>(p) % kCacheLine != 0) return false;
  const auto* arena = static_cast<const ProgramArena*>(p);
  return is_arena(arena) && arena->alive.load(std::memory_order_acquire);
}

bool arena_hold(ProgramArena* arena) {
  LockGuard guard(g_region_lock);
  if (!arena->alive.load(std::memory_order_relaxed)) return false;
  arena->heaps.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool arena_release(ProgramArena* arena) {
  Slice* outer;
  {
    LockGuard guard(g_region_lock);
    if (!arena->alive.load(std::memory_order_relaxed) || arena->heaps.load(std::memory_order_acquire) != 0) return false;
    outer = arena->outer;
    if (!arena_withdraw_locked(arena, outer == nullptr)) return false;
    arena->alive.store(false, std::memory_order_relaxed);
  }
  if (outer != nullptr) {
    // In the cage's table the inner arena's ages and tags are stale, and its memory may hold anything.
    char* area = arena->area_start;
    size_t bytes = arena->area_bytes;
    if (arena->traits.numa_node >= 0) os::bind_to_node(area, bytes, -1);
    bool clean = !arena->traits.pinned && purge_range(area, bytes) && arena->guards_clean;
    Arena* around = arena_of(outer);
    around->clear_ages(outer);
    around->give(outer, clean);
  }
  abandon(arena);
  return true;
}

void arenas_release_of(const void* owner) {
  for (;;) {
    ProgramArena* found = nullptr;
    {
      LockGuard guard(g_region_lock);
      for (ProgramArena* arena = g_program_arenas; found == nullptr && arena != nullptr; arena = arena->next_program) {
        if (arena->alive.load(std::memory_order_relaxed) && arena->traits.owner == owner) found = arena;
      }
    }
    if (found == nullptr || !arena_release(found)) return;
  }
}

}  // namespace ebb
