// Which thread has a part (a ThreadHeap) in which heap.
//
// A part of a first-class heap is in two lists: its thread's (Thread::heaps, under the thread's gate) and its
// heap's (FirstClassHeap::parts, under the heap's lock). Both change together, by someone who holds the gate and
// then the lock: the thread itself, or the end of the heap, which freezes the thread. So
//   whoever holds a thread's gate finds its parts whole, and the heaps that they belong to alive;
//   whoever holds g_thread_lock and sees a part in a heap's list may freeze its thread, and must look again then.
#pragma once

#include "heap/heap.h"
#include "heap/thread.h"

namespace ebb {

// The thread's part of a heap; null when it has none. The caller holds the thread's gate.
ThreadHeap* part_find(Thread* thread, Heap* heap);

// The same, made when there is none; null when out of memory. The caller is the thread, in its gate.
ThreadHeap* part_get(Thread* thread, Heap* heap);

// Without the gate, for the thread itself and a heap that is not about to end: the part when it is at hand.
EBB_INLINE ThreadHeap* part_at_hand(FirstClassHeap* heap) {
  // Whoever is parked, or has no Thread, is kNobodyHere and nobody's home.
  if (EBB_LIKELY(heap->home_owner.load(std::memory_order_relaxed) == tls_owner)) return &heap->home;
  if (tls_owner == kNobodyHere) return nullptr;
  RecentPart& recent = tls_thread->recent[heap->serial.load(std::memory_order_relaxed) % kRecentParts];
  if (recent.heap.load(std::memory_order_relaxed) != heap) return nullptr;
  return recent.part.load(std::memory_order_relaxed);
}

// Gives up what parked threads keep in the heap, as the scavenger would at a time of its own.
void parts_release_parked(Heap* heap);

// Takes a thread that ends out of all its heaps. Its pages are given up. The caller holds its gate, or the thread
// is gone.
void parts_leave(Thread* thread);

// Takes all threads out of a heap that ends. The pages of their parts: with `keep_blocks` (delete) those of the
// caller and of parked threads are given up, those of running ones put into their Thread::handover; without
// (destroy) they are left alone, as the caller frees them all. False when the caller interrupted a slow path of
// its own thread.
bool parts_detach(FirstClassHeap* heap, bool keep_blocks);

}  // namespace ebb
