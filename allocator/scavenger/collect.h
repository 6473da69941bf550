// Giving memory back on demand.
#pragma once

namespace ebb {

// Gives up what the calling thread keeps for reuse. With `force`, also sweeps the parked threads, punches holes,
// and returns when all memory that was free at the call is with the OS, also when a pass of the scavenger is
// under way: it waits for one step at most and does the rest itself.
void collect(bool force);

}  // namespace ebb
