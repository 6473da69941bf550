#include "scavenger/park.h"

#include "base/test_point.h"
#include "config/options.h"
#include "heap/thread.h"
#include "scavenger/collect.h"
#include "scavenger/scavenger.h"
#include "stats/counters.h"

namespace ebb {

bool park_begin() {
  if (EBB_UNLIKELY(option(Option::k_scavenger) == 0)) {
    collect(false);
    return false;
  }
  Thread* thread = thread_self_if_any();
  if (thread == nullptr) return true;  // nothing to hand over
  // From here on the thread's own fast paths leave its pages alone, whoever calls them.
  tls_heap = &g_empty_heap;
  tls_owner = kNobodyHere;
  compiler_barrier();
  bool touched = thread->touched;
  uint32_t state = kRunning;
  while (!thread->gate.compare_exchange_weak(state, kParked, std::memory_order_release, std::memory_order_relaxed)) {
    if (state == kParked || state == kSweeping) return true;  // begun twice
    state = kRunning;  // frozen by a fork for a moment
    cpu_relax();
  }
  EBB_TEST_POINT("park.begun");
  if (EBB_UNLIKELY(touched)) scavenger_notice_park();
  return true;
}

void park_end() {
  Thread* thread = thread_self_if_any();
  if (thread == nullptr || tls_owner != kNobodyHere) return;
  thread_unpark(thread);
}

}  // namespace ebb
