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

// For the scavenger: the next sparse page of a list, claimed, from the back to the front. `anchor` is the page
// that the last call returned, still claimed, or null at first; it stays where it is in the list, so it marks
// the place. A page that is not sparse may come, as a mark. Null at the end, and when a first-class heap is not
// in the life of that serial any more.
Page* page_claim_sparse(Heap* heap, uint64_t serial, size_t cls, Page* anchor);

// Not 0 when pages may wait for the scavenger to punch holes. It sets this to zero before it looks, and whoever
// releases a sparse page adds to it afterwards, so none is forgotten.
extern std::atomic<uint64_t> g_sparse_pages;

// Takes a page that the caller claimed out of its heap's list.
void page_unlist(Page* page);

// Work on a page that was claimed outside any thread's gate (the scavenger) happens under this lock, which
// fork takes, so that no child inherits a page that nobody will release.
extern Lock g_sweep_step_lock;

}  // namespace ebb
