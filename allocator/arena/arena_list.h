// The list of all arenas, by which passes find them, and their numbers, by which slices name them.
//
// Thread safety: reading needs no lock. An arena never leaves the list: one that was given up stays there with an
// empty range, so that whoever is just going through goes on undisturbed, and is used for the next one.
#pragma once

#include "arena/arena.h"
#include "arena/slice.h"
#include "os/lock.h"

namespace ebb {

// All arenas, newest first, linked by Arena::next.
Arena* first_arena();

Arena* arena_of(const Slice* slice);

// Whether the memory, of the allocator's own, is an arena in the list.
bool is_arena(const Arena* arena);

// Held while arenas are made or given up.
extern Lock g_region_lock;

// Lets an arena begin: a new one, or one that was withdrawn. `mapped`: it lies outside the cage with a table of its
// own, so that look-ups by address must be told. False when there are too many.
bool arena_publish_locked(Arena* arena, const Arena::Range& range, ArenaGroup group, bool mapped);

// Ends an arena that has no span in use, and waits for a purge step in it. False when it has.
bool arena_withdraw_locked(Arena* arena, bool mapped);

}  // namespace ebb
