// The background thread that gives memory back.
//
// It starts when an arena is first armed with more than purge_minimum_kib of free memory, sleeps without a
// deadline while nothing is dirty, and otherwise begins a new generation every purge_delay_ms / kPurgeAge.
#pragma once

#include <cstdint>

namespace ebb {

// Takes over a change of its options.
void scavenger_reconfigure();

// Whether somebody will sweep what a thread hands over; starts the thread if there is none yet. May allocate.
bool scavenger_ensure();

// A thread that has work for a sweep has parked: wakes the scavenger if it sleeps without a deadline.
void scavenger_notice_park();

// What is to be done at `now_ns`: parked threads swept, holes punched, free spans purged. Returns whether
// anything remains to be done later. The thread's loop calls it once a tick; tests drive it with a clock of
// their own.
bool scavenger_pass(uint64_t now_ns);

// Tests are the scavenger from here on: it counts as running, and its passes are theirs. Called before it has started.
void scavenger_stand_in_for_test();

}  // namespace ebb
