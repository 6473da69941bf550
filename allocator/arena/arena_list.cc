#include "arena/arena_list.h"

#include "arena/address_map.h"

namespace ebb {

constinit Lock g_region_lock{LockRank::kRegion};

namespace {

constexpr size_t kMostArenas = 4096;

constinit std::atomic<Arena*> g_arenas{nullptr};
constinit std::atomic<Arena*> g_arena_by_id[kMostArenas] = {};
constinit uint16_t g_arena_count = 0;

}  // namespace

Arena* first_arena() { return g_arenas.load(std::memory_order_acquire); }

// Whoever has a slice got it from its arena, or by a synchronisation with whoever did.
Arena* arena_of(const Slice* slice) { return g_arena_by_id[slice->arena_id].load(std::memory_order_relaxed); }

bool is_arena(const Arena* arena) {
  return arena->id() < kMostArenas && g_arena_by_id[arena->id()].load(std::memory_order_acquire) == arena;
}

bool arena_publish_locked(Arena* arena, const Arena::Range& range, ArenaGroup group, bool mapped) {
  uint16_t id = arena->id();
  bool is_new = g_arena_count == 0 || g_arena_by_id[id].load(std::memory_order_relaxed) != arena;
  if (is_new) {
    if (g_arena_count == kMostArenas) return false;
    id = g_arena_count;
  }
  if (mapped && !address_map_add_locked(arena, range)) return false;
  arena->set_group(group);
  arena->initialise(id, range);
  if (!is_new) return true;
  ++g_arena_count;
  g_arena_by_id[id].store(arena, std::memory_order_release);
  arena->next = g_arenas.load(std::memory_order_relaxed);
  g_arenas.store(arena, std::memory_order_release);
  return true;
}

bool arena_withdraw_locked(Arena* arena, bool mapped) {
  const char* start = arena->memory_start();
  {
    // No step is half done while this is held.
    LockGuard step(g_purge_step_lock);
    if (!arena->withdraw()) return false;
  }
  if (mapped) address_map_remove_locked(start);
  return true;
}

}  // namespace ebb
