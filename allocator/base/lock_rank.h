// The order in which locks are taken: a thread that holds a lock may only take one of a higher rank.
// Debug builds check it at every acquisition (os/lock.h).
#pragma once

#include <cstdint>

namespace ebb {

enum class LockRank : uint8_t {
  kThreadRegistry = 1,  // the list of threads (heap/thread.h)
  kThreadGate,          // one thread's gate: its slow path, a sweep of it while parked, fork
  kHeapRegistry,        // the list of heaps (heap/heap.h)
  kSweepStep,           // work on one page that nobody owns (heap/shared_pages.h)
  kHeap,                // one heap's shared page lists
  kRegion,              // making a further reservation (arena/cage.cc)
  kPurgeStep,           // one purge step: the OS call included (arena/purge.cc)
  kArena,               // one arena's free spans
  kMetaPool,            // memory of the allocator's own structures
  kSamples,             // the list of live samples (heap/sample_list.h)
};

}  // namespace ebb
