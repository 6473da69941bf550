// The background thread that gives memory back.
//
// It starts when an arena is first armed with more than purge_minimum_kib of free memory, sleeps without a
// deadline while nothing is dirty, and otherwise begins a new generation every purge_delay_ms / kPurgeAge.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.h"

namespace ebb {

// Takes over a change of its options.
void scavenger_reconfigure();

// The thread is there and is to sweep parked threads.
extern std::atomic<bool> g_scavenger_sweeps;

// Whether somebody will sweep what a thread hands over; starts the thread if there is none yet. May allocate.
bool scavenger_ensure();

// Futex word of the sleep without a deadline: counts what the scavenger is told. And whether it sleeps so.
extern std::atomic<uint32_t> g_armings;
extern std::atomic<bool> g_scavenger_sleeps;
EBB_COLD void scavenger_wake();

// Tells the scavenger, whose thread is there, that there is something to do; wakes it if it sleeps without a deadline.
// Counted even while it is awake: it may have looked at the caller's part already and be about to sleep. Sequentially
// consistent with g_scavenger_sleeps: either this sees the sleeper, or the sleeper sees this.
EBB_INLINE void scavenger_notice() {
  g_armings.fetch_add(1, std::memory_order_seq_cst);
  if (EBB_UNLIKELY(g_scavenger_sleeps.load(std::memory_order_seq_cst))) scavenger_wake();
}

// What is to be done at `now_ns`: parked threads swept, holes punched, free spans purged. Returns whether
// anything remains to be done later. The thread's loop calls it once a tick; tests drive it with a clock of
// their own.
bool scavenger_pass(uint64_t now_ns);

// Tests are the scavenger from here on: it counts as running, and its passes are theirs. Called before it has started.
void scavenger_stand_in_for_test();

}  // namespace ebb
