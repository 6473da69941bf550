// The memory of first-class heaps' structures.
//
// They stand in *chunks* of one slice. A structure that is given back is used again; a chunk that has had none in use
// for as long as free memory waits is given back to the OS by a pass of the scavenger, all but one, and by a forced
// purge. So what ended heaps leave behind is a chunk's memory at most, and address space. Chunks in part used are used
// first.
//
// Thread safety: the caller holds the lock of the list of heaps.
//
// Invariants:
//  1. The memory of a structure is never anything else (heap/heap.h, 4). Whoever followed a stale Page::heap may
//     write its `lock` and `has_sparse` at any time, also when the memory was given back.
//  2. Zero bytes are an unused structure: its lock is open, it has no serial, and it is not the main heap.
//  3. No lock of a structure is held by anybody else while its memory is given back, and sleepers are woken then.
#pragma once

#include "heap/heap.h"

namespace ebb {

// A structure that was never used, or that was given back: then all is as it was left. Null when out of memory.
FirstClassHeap* heap_structure_take_locked();
// Returns whether the scavenger has to be told (announce_armed) of memory that may go back.
bool heap_structure_give_locked(FirstClassHeap* heap);

// Whether a structure, used or not, is at this address; any address. Needs no lock.
bool is_heap_structure(const void* p);

// Gives the memory of unused ones back, when it is due or all of it. Returns whether some waits still, for another pass.
bool heap_structures_return_locked(bool forced);
bool heap_structures_wait_locked();

// In a fork child, where whoever held the lock of an unused structure for a look is gone.
void heap_structures_after_fork_locked();

}  // namespace ebb
