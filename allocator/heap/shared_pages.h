// Pages that no thread owns: giving them up, and finding them again.
//
// The caller of each function owns or has claimed the page unless it says otherwise.
#pragma once

#include "heap/heap.h"
#include "page/page.h"

namespace ebb {

// Gives a page up: to its arena when no block is live, else ownerless, listed when it has blocks to offer.
void page_release(Page* page);

// Gives an empty page back to its arena.
void page_retire(Page* page);

// A page of the heap's class `cls` that nobody owned, now claimed; null when there is none. Any thread.
Page* page_adopt(Heap* heap, size_t cls);

// Takes a page that the caller claimed out of its heap's list.
void page_unlist(Page* page);

// Work on a page that was claimed outside any thread's gate (the scavenger) happens under this lock, which
// fork takes, so that no child inherits a page that nobody will release.
extern Lock g_sweep_step_lock;

}  // namespace ebb
