// The background thread that gives memory back.
//
// It starts when an arena is first armed with more than purge_minimum_kib of free memory, sleeps without a
// deadline while nothing is dirty, and otherwise begins a new generation every purge_delay_ms / kPurgeAge.
#pragma once

namespace ebb {

// Connects the scavenger to the arenas; called once, when the allocator is ready. Starts nothing.
void scavenger_connect();

// Takes over a change of its options.
void scavenger_reconfigure();

// One pass over all arenas at the present generation; returns whether something dirty remains. The thread's
// loop calls it; tests drive it with a clock of their own.
bool scavenger_pass();

}  // namespace ebb
