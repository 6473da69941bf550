// Arenas that the program makes: of address space that Ebb reserves for it, or of memory that it brings along.
//
// A reserved arena is a span of the cage with a free-standing arena inside. It shares the cage's table, so blocks of
// it are found and freed as fast as all others:
//
//   cage   … │ guard │ slices of the inner arena … │ guard │ …      the guards keep the cage's boundary tags
//
// An adopted arena holds its table and ages at its own start, so that nothing outside the range is touched:
//
//   start │ table │ ages │ up to a multiple of 64 KiB │ slices … │ rest up to the end
//
// Thread safety: every function may be called by any thread. A handle stays readable after its arena was released,
// and says so.
#pragma once

#include <atomic>
#include <cstddef>

#include "arena/arena.h"

namespace ebb {

// How an arena is to be, or is.
struct ArenaTraits {
  bool committed = false;  // adopted memory is readable and writable already
  bool pinned = false;     // its memory is never given back
  bool zero = false;       // it is all zero
  bool exclusive = false;  // for the heaps made in it alone
  int numa_node = -1;      // -1: the system's choice
  ArenaGroup group = nullptr;  // whom it serves when it is not exclusive: everybody, or a sub-process
  const void* owner = nullptr;  // the sub-process that made it; null: the process's own world
};

class ProgramArena : public Arena {
 public:
  std::atomic<bool> alive{false};
  std::atomic<uint32_t> heaps{0};  // made in it and not ended yet
  ArenaTraits traits;
  char* area_start = nullptr;  // as the program sees it
  size_t area_bytes = 0;
  bool guards_clean = false;
  Slice* outer = nullptr;  // reserved: its span in the arena around it
  ProgramArena* next_program = nullptr;

  bool contains_address(const void* p) const {
    return reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(area_start) < area_bytes;
  }
};

constexpr size_t kLeastArenaBytes = 1 * MiB;

// An arena of `bytes`, rounded up to slices, of fresh address space. Null when that is refused.
ProgramArena* arena_reserve(size_t bytes, const ArenaTraits& traits);

// An arena in [start, start + bytes): start and bytes are multiples of the OS page, and at least kLeastArenaBytes.
// Null when it overlaps memory that is Ebb's already, or the OS refuses to make it accessible.
ProgramArena* arena_adopt(void* start, size_t bytes, const ArenaTraits& traits);

// Whether a range may be adopted as far as its place goes.
bool arena_is_adoptable(void* start, size_t bytes);

// Counts a heap that is made in the arena; false when the arena was released. Until uncounted it can't be.
bool arena_hold(ProgramArena* arena);
inline void arena_let_go(ProgramArena* arena) { arena->heaps.fetch_sub(1, std::memory_order_release); }

// Whether this is an arena of the program's at the moment; any address.
bool arena_is_alive(const void* p);

// Ends an arena that has neither heaps nor spans in use; false when it has. Reserved address space goes back with
// its memory; adopted memory is the program's again, with whatever stands in it.
bool arena_release(ProgramArena* arena);

// Ends all arenas that a sub-process made or took, none of which is in use.
void arenas_release_of(const void* owner);

}  // namespace ebb
