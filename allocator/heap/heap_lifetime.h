// Making and ending first-class heaps, and the list of all that there are.
//
// Thread safety: any thread may call any of it, for any heap, also one it never used. While a heap is deleted,
// other threads may free its blocks; when it is destroyed, nobody uses it any more.
#pragma once

#include "heap/heap.h"
#include "heap/heap_structures.h"
#include "os/lock.h"

namespace ebb {

// A heap whose spans come from `source`. Null when out of memory.
FirstClassHeap* heap_new(Subprocess* subprocess, const SpanSource& source);

// Ends the heap; its live blocks move to `target`. False, and nothing has happened, when it can't be: a thread has
// it as its default, or the caller interrupted the allocator in a signal handler.
bool heap_delete(FirstClassHeap* heap, Heap* target);

// Ends the heap and frees all its blocks, without a look at them. False as above.
bool heap_destroy(FirstClassHeap* heap);

// Whether this is a first-class heap at the moment; any address.
inline bool heap_is_alive(const void* p) {
  return is_heap_structure(p) && static_cast<const FirstClassHeap*>(p)->serial.load(std::memory_order_relaxed) != 0;
}

// Goes through all first-class heaps; those that end meanwhile are passed over. For the scavenger and statistics.
// The heap that next() returned may end at any moment: whoever uses it checks its serial under its lock.
class HeapCursor {
 public:
  HeapCursor();
  ~HeapCursor();
  HeapCursor(const HeapCursor&) = delete;
  HeapCursor& operator=(const HeapCursor&) = delete;

  // Null at the end. `serial` tells the heap's life from a later one of the same structure.
  FirstClassHeap* next(uint64_t* serial);

 private:
  friend void registry_remove_locked(FirstClassHeap* heap);
  FirstClassHeap* at_ = nullptr;
  HeapCursor* other_ = nullptr;
};

// The first heap of a sub-process besides `but`; null when there is none.
FirstClassHeap* heap_of_subprocess(const Subprocess* subprocess, const FirstClassHeap* but);

// How many threads have a heap of the sub-process as their default.
uint32_t subprocess_default_users(const Subprocess* subprocess);

// Gives the memory of ended heaps' structures back to the OS: what is due (a pass of the scavenger), or all of it.
// Returns whether some waits still.
bool heaps_return_structures(bool forced);
bool heap_structures_wait();

// fork: the list of heaps, then the heaps.
void heaps_lock_registry_for_fork();
void heaps_lock_for_fork();
void heaps_unlock_after_fork(bool child);
void heaps_unlock_registry_after_fork();

}  // namespace ebb
