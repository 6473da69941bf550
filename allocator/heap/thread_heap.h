// What one thread needs to allocate from one heap. The fast path of malloc reads nothing else.
//
// Owned by its thread, which alone touches it; while the thread is parked, by the scavenger; after the
// thread's end, by whoever takes it apart.
//
// Invariants: free[c] holds blocks of active[c] only; spare[c] is another page of class c with free blocks;
// both are owned by the thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "page/page.h"
#include "page/size_class.h"

namespace ebb {

struct Thread;

// Which classes' lists were cut in front of a block that is to be a sample (heap/sampling.h).
struct SampleMarks {
  uint64_t due[2] = {};  // a bit for each class
  uint64_t life = 0;  // of the sampling and of the heap in which they were set; 0: none were

  void set(size_t cls) { due[cls / 64] |= uint64_t{1} << (cls % 64); }
  void clear(size_t cls) { due[cls / 64] &= ~(uint64_t{1} << (cls % 64)); }
  // The class's list is given up.
  void forget(size_t cls) {
    if (EBB_UNLIKELY(life != 0)) clear(cls);
  }
  bool has(size_t cls) const { return (due[cls / 64] >> (cls % 64) & 1) != 0; }
};
static_assert(kClassCount <= 128, "a bit for each class");

struct ThreadHeap {
  // First, so that the fast path reaches both with one register and no further addition.
  Block* free[kClassCount] = {};
  ClassTable classes = make_class_table();
  Page* active[kClassCount] = {};
  Page* spare[kClassCount] = {};
  Heap* heap = nullptr;
  Thread* thread = nullptr;
  uint8_t borrowed[kLendingClass] = {};  // blocks that these classes took from the lending class (heap/alloc.cc)
  bool has_stale_tails = false;  // a page was made in a span that may hold memory of an earlier one; a hint
  // First-class heaps: the thread's list of its parts, and the heap's (heap/parts.h).
  ThreadHeap* next = nullptr;
  ThreadHeap* prev = nullptr;
  ThreadHeap* heap_next = nullptr;
  ThreadHeap* heap_prev = nullptr;
  SampleMarks samples;
};

// Shared by all threads that have no heap (yet, or while parked): all its lists are empty, so every
// allocation goes to the slow path. Never written.
EBB_HIDDEN extern const ThreadHeap g_empty_heap;

}  // namespace ebb
