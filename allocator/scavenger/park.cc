#include "scavenger/park.h"

#include "base/test_point.h"
#include "config/options.h"
#include "heap/thread.h"
#include "scavenger/collect.h"
#include "scavenger/scavenger.h"
#include "stats/counters.h"

namespace ebb {

namespace {

// Nobody will sweep for this thread: it gives up here and now what it keeps in reserve.
EBB_COLD bool sweep_inline() {
  collect(false);
  return false;
}

// Park from inside the thread's own slow path (a signal handler that blocks): the heaps are in use.
EBB_COLD bool stay(Thread* thread) {
  tls_owner = thread->id();
  tls_heap = thread->current;
  return false;
}

}  // namespace

bool park_begin() {
  if (EBB_UNLIKELY(option(Option::k_scavenger) == 0)) return sweep_inline();
  Thread* thread = thread_self_if_any();
  if (thread == nullptr || tls_owner == kNobodyHere) return true;  // nothing to hand over, or begun twice
  // Work is left from a sweep that this thread interrupted, or made by its slow path since.
  bool has_work = thread->touched.load(std::memory_order_relaxed) || thread->sweep_class != 0;
  if (EBB_UNLIKELY(has_work) && EBB_UNLIKELY(!scavenger_ensure())) return sweep_inline();
  // From here on the thread's own fast paths leave its pages alone, whoever calls them.
  tls_heap = &g_empty_heap;
  tls_owner = kNobodyHere;
  compiler_barrier();
  EBB_TEST_POINT("park.handing");
  uint32_t state = kRunning;
  while (!thread->gate.compare_exchange_weak(state, kParked, std::memory_order_seq_cst, std::memory_order_relaxed)) {
    if (state == kParked || state == kSweeping) return true;  // a signal handler has parked
    if (state == kBusy) return stay(thread);
    state = kRunning;  // frozen by a fork for a moment
    cpu_relax();
  }
  EBB_TEST_POINT("park.begun");
  // Read again: a signal handler may have allocated just before the gate was handed over.
  if (EBB_UNLIKELY(has_work || thread->touched.load(std::memory_order_relaxed))) scavenger_notice_park();
  return true;
}

void park_end() {
  Thread* thread = thread_self_if_any();
  if (thread == nullptr || tls_owner != kNobodyHere) return;
  thread_unpark(thread);
}

}  // namespace ebb
