// Handing a thread's heaps over around a blocking wait. See heap/thread.h for the states.
#pragma once

namespace ebb {

// The calling thread is about to block. True: its heaps are handed over, and the scavenger sweeps them while it
// sleeps. False: there is no scavenger (option), so what the thread kept in reserve was given up here and now.
bool park_begin();

// The wait is over; without effect when the thread is not parked (an allocation while parked ends it).
void park_end();

}  // namespace ebb
