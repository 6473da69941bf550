// The scavenger's work on pages: taking surplus from parked threads, and punching holes in sparse pages that
// nobody owns. Each step works on one page and can be paused after it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

// Gives up the pages of threads that have been parked, are due (hole_interval_ms since they were last swept)
// and have been in their slow path since. Returns whether parked threads remain that are not due yet.
// With kSweepAllNow all parked threads are due.
bool sweep_parked_threads(uint64_t now_ns);
constexpr uint64_t kSweepAllNow = UINT64_MAX;

// Punches holes in sparse pages: in those that were released since somebody last began to, or in all that wait, also
// when somebody is at them just now (it waits for the page at hand and does the rest). Returns the bytes given back.
enum class Punch { kNew, kAll };
size_t punch_sparse_pages(Punch which);

}  // namespace ebb
