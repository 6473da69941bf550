#include "scavenger/scavenger.h"

#include <atomic>

#include "arena/cage.h"
#include "base/bits.h"
#include "base/test_point.h"
#include "config/options.h"
#include "heap/heap_lifetime.h"
#include "heap/process.h"
#include "heap/shared_pages.h"
#include "heap/thread.h"
#include "os/os.h"
#include "scavenger/sweep.h"
#include "stats/counters.h"

namespace ebb {

constinit std::atomic<bool> g_scavenger_sweeps{false};
constinit std::atomic<uint32_t> g_armings{0};
constinit std::atomic<bool> g_scavenger_sleeps{false};

namespace {

enum RunState : int { kIdle, kStarting, kRunningThread, kInline };

constinit std::atomic<int> g_run_state{kIdle};
constinit uint32_t g_tick_word = 0;            // never changes: what timed sleeps wait for
constinit std::atomic<uint64_t> g_holes_due_ns{0};  // when sparse pages are punched; 0: none seen
// How many sparse pages the last pass saw, and since when it has been so many.
constinit std::atomic<uint64_t> g_sparse_seen{0}, g_sparse_changed_ns{0};
constinit std::atomic<uint64_t> g_inline_due_ns{0};
constinit std::atomic<int> g_process_id{0};  // whose memory this is, as far as known

// Sleeping less than a millisecond at a time would be spinning.
uint64_t tick_ns() {
  return max_of<uint64_t>(static_cast<uint64_t>(option(Option::k_purge_delay_ms)) * 1000000u / kPurgeAge, 1000000u);
}

bool is_eager() {
  return option(Option::k_scavenger) == word::scavenger_eager || option(Option::k_purge_delay_ms) == 0;
}

const uint32_t* armings_word() { return reinterpret_cast<const uint32_t*>(&g_armings); }

uint32_t first_threshold() {
  if (option(Option::k_scavenger) == word::scavenger_off) return UINT32_MAX;
  size_t bytes = static_cast<size_t>(option(Option::k_purge_minimum_kib)) * KiB;
  return max_of<uint32_t>(SliceCount::from_bytes_up(bytes).value, 1);
}

void run() {
  g_scavenger_present.store(true, std::memory_order_relaxed);
  g_run_state.store(kRunningThread, std::memory_order_release);
  // From now on every dirty slice counts: waking a thread costs less than keeping memory.
  scavenger_reconfigure();
  for (;;) {
    uint32_t seen = g_armings.load(std::memory_order_acquire);
    if (scavenger_pass(os::monotonic_ns())) {
      uint64_t due = os::monotonic_ns() + tick_ns();
      for (uint64_t now; (now = os::monotonic_ns()) < due;) os::wait(&g_tick_word, 0, due - now);
      begin_generation();
    } else {
      EBB_TEST_POINT("scavenger.sleep");
      g_scavenger_sleeps.store(true, std::memory_order_seq_cst);
      os::wait(armings_word(), seen, UINT64_MAX);
      g_scavenger_sleeps.store(false, std::memory_order_relaxed);
    }
  }
}

// The arenas' hook: inside slow paths, so it only leaves word.
void on_armed() {
  scavenger_notice();
  if (g_run_state.load(std::memory_order_acquire) != kRunningThread) g_deferred.store(true, std::memory_order_relaxed);
}

// No thread may be had: the slow paths purge, at the scavenger's times.
void purge_inline() {
  uint64_t now = os::monotonic_ns();
  uint64_t due = g_inline_due_ns.load(std::memory_order_relaxed);
  if (now < due || !g_inline_due_ns.compare_exchange_strong(due, now + tick_ns(), std::memory_order_relaxed)) return;
  begin_generation();
  // Disarmed before it is read, as in arena/purge.cc: what is armed behind the pass must not be forgotten.
  g_deferred.store(false, std::memory_order_seq_cst);
  if (scavenger_pass(now)) g_deferred.store(true, std::memory_order_relaxed);
}

// In a vfork child this memory is the parent's: no thread of a process that is about to exec, and the parent has still
// to be told. The process that allocated first may have been such a child, too; it is gone then, or not our parent.
bool is_vfork_child() {
  int process = os::process_id(), owner = g_process_id.load(std::memory_order_relaxed);
  if (process == owner) return false;
  if (os::parent_process_id() == owner) return true;
  g_process_id.store(process, std::memory_order_relaxed);
  return false;
}

// Starts the thread unless somebody has. Allocates.
void start() {
  int state = kIdle;
  if (!g_run_state.compare_exchange_strong(state, kStarting, std::memory_order_acq_rel)) return;
  if (!os::start_thread(run)) {
    g_run_state.store(kInline, std::memory_order_release);
    g_deferred.store(true, std::memory_order_relaxed);
  }
}

// At the end of a slow path, where nothing is held.
void on_deferred() {
  int state = g_run_state.load(std::memory_order_acquire);
  if (is_vfork_child()) return;
  if (state == kInline) return purge_inline();
  g_deferred.store(false, std::memory_order_relaxed);
  if (option(Option::k_scavenger) == word::scavenger_off) return;
  start();
  // Another thread may have failed to start it meanwhile; then its word was taken back above.
  if (g_run_state.load(std::memory_order_acquire) == kInline) g_deferred.store(true, std::memory_order_relaxed);
}

// A fork child has no scavenger; the next slow path starts one if there is something to purge, be it only what was
// free at the fork: while the child keeps that, its parent cannot give it back either.
void after_fork_in_child() {
  g_process_id.store(os::process_id(), std::memory_order_relaxed);
  g_run_state.store(kIdle, std::memory_order_relaxed);
  g_scavenger_sweeps.store(false, std::memory_order_relaxed);
  g_scavenger_sleeps.store(false, std::memory_order_relaxed);
  g_scavenger_present.store(false, std::memory_order_relaxed);
  g_holes_due_ns.store(0, std::memory_order_relaxed);
  g_sparse_seen.store(0, std::memory_order_relaxed);
  g_inline_due_ns.store(0, std::memory_order_relaxed);
  uint32_t threshold = first_threshold();
  g_arm_threshold_slices.store(threshold, std::memory_order_relaxed);
  bool dirty = g_sparse_pages.load(std::memory_order_relaxed) != 0 || heap_structures_wait();
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    dirty |= arena->usage().dirty_bytes >> kSliceShift >= threshold;
  }
  g_deferred.store(dirty, std::memory_order_relaxed);
}

}  // namespace

namespace {

// Sparse pages wait for a punch: not where huge pages are to stay whole, as a hole would split one.
bool holes_wait() {
  return g_sparse_pages.load(std::memory_order_relaxed) != 0 && option(Option::k_thp) != word::thp_full;
}

// They wait hole_interval_ms for more of their blocks to come back, so that a page is punched once; half of that when
// no further page has become sparse for so long: nobody is freeing.
bool holes_are_due(uint64_t now_ns) {
  if (!holes_wait()) return false;
  uint64_t interval_ns = is_eager() ? 0 : static_cast<uint64_t>(option(Option::k_hole_interval_ms)) * 1000000u;
  uint64_t pages = g_sparse_pages.load(std::memory_order_relaxed);
  if (pages != g_sparse_seen.load(std::memory_order_relaxed)) {
    g_sparse_seen.store(pages, std::memory_order_relaxed);
    g_sparse_changed_ns.store(now_ns, std::memory_order_relaxed);
  }
  uint64_t due = g_holes_due_ns.load(std::memory_order_relaxed);
  if (due == 0) {
    due = now_ns + interval_ns;
    g_holes_due_ns.store(due, std::memory_order_relaxed);
  }
  return now_ns >= due || now_ns - g_sparse_changed_ns.load(std::memory_order_relaxed) >= interval_ns / 2;
}

}  // namespace

bool scavenger_ensure() {
  if (EBB_UNLIKELY(g_run_state.load(std::memory_order_relaxed) == kIdle) && !is_vfork_child()) start();
  int state = g_run_state.load(std::memory_order_relaxed);
  return state == kStarting || state == kRunningThread;
}

void scavenger_wake() { os::wake(armings_word(), 1); }

bool scavenger_pass(uint64_t now_ns) {
  bool later = sweep_parked_threads(now_ns);
  if (holes_are_due(now_ns)) {
    // Forgotten first: pages that become sparse behind this wait an interval of their own.
    g_holes_due_ns.store(0, std::memory_order_relaxed);
    g_sparse_seen.store(0, std::memory_order_relaxed);
    punch_sparse_pages(Punch::kNew);
  }
  bool dirty = heaps_return_structures(false) || later || holes_wait();
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) dirty |= arena->purge_due();
  return dirty;
}

// Starts nothing.
void process_connect_scavenger() {
  g_process_id.store(os::process_id(), std::memory_order_relaxed);
  g_arena_armed_hook = on_armed;
  g_deferred_hook = on_deferred;
  g_fork_hooks.child = after_fork_in_child;
  scavenger_reconfigure();
}

void scavenger_stand_in_for_test() {
  g_run_state.store(kRunningThread, std::memory_order_release);
  g_scavenger_present.store(true, std::memory_order_relaxed);
  scavenger_reconfigure();
}

void scavenger_reconfigure() {
  g_purge_age.store(is_eager() ? 0 : kPurgeAge, std::memory_order_relaxed);
  bool on = option(Option::k_scavenger) != word::scavenger_off;
  bool started = g_run_state.load(std::memory_order_acquire) == kRunningThread;
  g_scavenger_sweeps.store(on && started, std::memory_order_relaxed);
  g_arm_threshold_slices.store(on && started ? 1 : first_threshold(), std::memory_order_relaxed);
}

}  // namespace ebb
