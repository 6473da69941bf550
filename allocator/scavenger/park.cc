#include "scavenger/park.h"

#include "base/test_point.h"
#include "config/options.h"
#include "heap/thread.h"
#include "scavenger/collect.h"
#include "scavenger/scavenger.h"
#include "stats/counters.h"

namespace ebb {

namespace {

// Whether there is work for a sweep: left from one that the thread interrupted, or made by its slow path since.
EBB_INLINE bool has_work(const Thread* thread) {
  return thread->touched.load(std::memory_order_relaxed) || thread->sweep_class != 0;
}

// Park from inside the thread's own slow path (a signal handler that blocks): the heaps are in use.
EBB_COLD bool stay(Thread* thread) {
  tls_owner = thread->id();
  tls_heap = thread->current;
  return false;
}

// From the first two lines on the thread's own fast paths leave its pages alone, whoever calls them.
EBB_INLINE bool hand_over(Thread* thread, bool had_work) {
  tls_heap = &g_empty_heap;
  tls_owner = kNobodyHere;
  compiler_barrier();
  EBB_TEST_POINT("park.handing");
  uint32_t state = kRunning;
  while (EBB_UNLIKELY(!thread->gate.compare_exchange_weak(state, kParked, std::memory_order_seq_cst,
                                                          std::memory_order_relaxed))) {
    if (state == kParked || state == kSweeping) return true;  // a signal handler has parked
    if (state == kBusy) return stay(thread);
    state = kRunning;  // frozen by a fork for a moment
    cpu_relax();
  }
  EBB_TEST_POINT("park.begun");
  // Read again: a signal handler may have allocated just before the gate was handed over.
  if (had_work || thread->touched.load(std::memory_order_relaxed)) {
    count(Counter::k_parks);
    scavenger_notice();
  }
  return true;
}

// There is no scavenger, or it is to do nothing. It is started for a thread that has work for it; where that cannot be
// the thread gives up here and now what it keeps in reserve.
EBB_COLD bool park_begin_unswept(Thread* thread) {
  bool work = thread != nullptr && tls_owner != kNobodyHere && has_work(thread);
  if (option(Option::k_scavenger) == word::scavenger_off || (work && !scavenger_ensure())) {
    collect(false);
    return false;
  }
  return thread == nullptr || tls_owner == kNobodyHere || hand_over(thread, work);
}

}  // namespace

bool park_begin() {
  Thread* thread = thread_self_if_any();
  if (EBB_UNLIKELY(!g_scavenger_sweeps.load(std::memory_order_relaxed))) return park_begin_unswept(thread);
  if (thread == nullptr || tls_owner == kNobodyHere) return true;  // nothing to hand over, or begun twice
  return hand_over(thread, has_work(thread));
}

void park_end() {
  Thread* thread = thread_self_if_any();
  if (thread == nullptr || tls_owner != kNobodyHere) return;
  thread_unpark(thread);
}

}  // namespace ebb
