#include "scavenger/collect.h"

#include "arena/cage.h"
#include "heap/heap_lifetime.h"
#include "heap/thread.h"
#include "scavenger/sweep.h"

namespace ebb {

void collect(bool force) {
  Thread* thread = thread_self_if_any();
  if (thread != nullptr) {
    Gate gate(thread);
    if (gate.is_open()) thread_release_pages(thread, false);
  }
  if (force) {
    sweep_parked_threads(kSweepAllNow);
    punch_sparse_pages(Punch::kAll);
    if (heaps_return_structures(true)) announce_armed();
    uint8_t age = begin_forced_purge();
    for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) arena->purge_all(age);
  }
  run_deferred();
}

}  // namespace ebb
