// The cage: one large reservation that holds nearly all of Ebb's memory, with the metadata table of all its
// slices at its start. Whether a pointer is Ebb's, and where its metadata stands, is one subtraction and one
// comparison; NULL, stack pointers and other allocators' pointers fail the comparison.
//
//   base                                                                     base + size
//    │ table: kPageStride bytes a slice │ ages: a byte a slice │ slices …        │
//
// Memory outside the cage (a further reservation when it is used up, adopted memory) consists of arenas with
// their own tables, found on slow paths only.
#pragma once

#include "arena/arena.h"
#include "arena/arena_list.h"
#include "arena/slice.h"
#include "base/compiler.h"
#include "base/units.h"

namespace ebb {

struct Cage {
  char* base;
  size_t size;  // 0 until cage_initialise(): then no pointer is inside
};
EBB_HIDDEN extern Cage g_cage;
EBB_HIDDEN extern Arena g_cage_arena;  // its range stays

// Reserves the cage. Called once, by process start (heap/process.cc). False when the OS refuses even a small one.
bool cage_initialise();

// The entry of the slice that holds `p`, by the cage alone; p must be inside.
EBB_INLINE Slice* cage_slice(uintptr_t offset) {
  return reinterpret_cast<Slice*>(g_cage.base + (offset >> kSliceShift) * kPageStride);
}

// The metadata of the slice that holds `p`, wherever that is; null when p is not Ebb's. Lock-free.
Slice* find_slice(const void* p);

// The same for any address: null also where no slice was handed out yet, whose entry can't be read.
Slice* find_known_slice_outside(const void* p);
EBB_INLINE Slice* find_known_slice(const void* p) {
  uintptr_t offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(g_cage.base);
  return EBB_LIKELY(offset < g_cage.size) ? g_cage_arena.slice_holding(p) : find_known_slice_outside(p);
}

// The first slice of the page or large block around any address; null where none is.
Slice* find_span(const void* p);

// Takes a span from the main arenas: from the cage, from further reservations, from a new one; before giving
// up it returns free memory to the OS, which joins what was apart. Null: out of memory.
Slice* take_span(SliceCount slices, size_t alignment, bool* zero);

// Memory for the allocator's own structures: 64-byte aligned, of unknown contents, `bytes` up to 16 KiB.
// Thread-safe. Null when out of memory.
void* meta_take(size_t bytes);
void meta_give(void* p, size_t bytes);
void meta_lock_for_fork();
void meta_unlock_after_fork();

// fork: consistent while held. In rank order with all arenas.
void arenas_lock_for_fork();
void arenas_unlock_after_fork(bool child);

}  // namespace ebb
