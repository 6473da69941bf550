// A sub-process: a world of heaps and arenas that shares no block memory with the rest of the process. It has a
// main heap of its own, takes its spans from arenas of its own, and gives all of them back when it is destroyed.
//
// Thread safety: any thread may call any of it. Threads enter and leave a sub-process; one that is in none is in the
// process's own world.
#pragma once

#include <atomic>
#include <cstdint>

#include "heap/heap.h"

namespace ebb {

struct Subprocess {
  std::atomic<FirstClassHeap*> main{nullptr};  // null: between two lives of the structure
  std::atomic<uint32_t> threads{0};            // that have entered
  Subprocess* next_unused = nullptr;
};

// Null when out of memory.
Subprocess* subprocess_new();

// The calling thread allocates in `subprocess` from now on; null: in the process's own world. False when out of
// memory, or when the caller interrupted the allocator in a signal handler.
bool subprocess_enter(Subprocess* subprocess);

// What the calling thread has entered; null: the process's own world.
Subprocess* subprocess_current();

// Ends all its heaps and blocks and gives its arenas back. False, and nothing has happened, when another thread is in
// it or has a heap of it as its default. The caller leaves it.
bool subprocess_destroy(Subprocess* subprocess);

// Whether this is a sub-process at the moment; any address.
bool subprocess_is_alive(const void* p);

// The main heap of a world; null: the process's.
inline Heap* main_heap_of(const Subprocess* subprocess) {
  return subprocess == nullptr ? &g_main_heap : subprocess->main.load(std::memory_order_relaxed);
}

// What malloc of the calling thread uses. Returns the heap before; null when that can't be changed now.
Heap* default_heap_set(Heap* heap);

// fork: the list of unused structures.
void subprocesses_lock_for_fork();
void subprocesses_unlock_after_fork();

}  // namespace ebb
