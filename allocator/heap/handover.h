// Pages of deleted heaps that a running thread was left with.
//
// A thread owns the pages that it allocates from, and frees their blocks without an atomic operation. When another
// thread deletes the heap it may be in the middle of that, so its pages stay its own for the time being:
//
//   heap_delete ──▶ Thread::handover ──┬──▶ given up by the thread, when it next enters its slow path, parks or ends
//                                      ├──▶ retired by the free of the last block, if another thread's, at once or some
//                                      │    at a time
//                                      └──▶ retired by a pass of the scavenger or a forced purge, when empty
//
// A page with no live block can't be in the middle of anything: whoever holds the thread's gate, so that it does not
// give the page up at the same time, may retire it. So what a thread that rests for ever is left with is pages that
// hold live blocks.
#pragma once

#include "heap/heap.h"
#include "heap/thread.h"

namespace ebb {

// Leaves the pages of the thread's part in a heap that is deleted to it. What stands in the part's lists comes back as
// if another thread had freed it. The caller has frozen the thread.
void handover_add(Thread* thread, ThreadHeap* part);

// Forgets pages of a heap that is destroyed; they are there only when the heap inherited them from a deleted one. The
// caller holds g_thread_lock.
void handover_drop(Thread* thread, const FirstClassHeap* heap);

// A page of the thread with this identity, if it still is one, was seen empty: retires it, or leaves it until an eighth
// of what the thread was left with is. Nothing held.
void handover_note_empty(OwnerId owner);

// Retires the empty pages of all threads. Nothing held.
void handover_collect();

}  // namespace ebb
