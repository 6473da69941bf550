// Finds the metadata of memory outside the cage: further reservations and adopted ranges.
//
// A sorted table in two copies. The writer (under g_region_lock) fills the copy that nobody reads and then raises
// the version, which names the other one: a reader never waits for a writer, and reads again only when the version
// has changed under it.
#pragma once

#include <cstdint>

#include "arena/arena.h"

namespace ebb {

// The metadata of the slice at `address`; null when no range holds it. Lock-free.
Slice* address_map_find(uintptr_t address);

// The arena whose range holds `address`; null when none does. Lock-free.
Arena* address_map_find_arena(uintptr_t address);

// Adds an arena's range of slices; false when the map is full.
bool address_map_add_locked(Arena* arena, const Arena::Range& range);
// Removes the range that begins at `start`, the memory of its first usable slice.
void address_map_remove_locked(const char* start);

// Whether a range of addresses overlaps one that is there. Under g_region_lock.
bool address_map_overlaps_locked(uintptr_t begin, uintptr_t end);

}  // namespace ebb
