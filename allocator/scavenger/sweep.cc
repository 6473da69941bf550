#include "scavenger/sweep.h"

#include "base/test_point.h"
#include "config/options.h"
#include "heap/heap.h"
#include "heap/shared_pages.h"
#include "heap/thread.h"
#include "os/os.h"
#include "page/remote.h"
#include "stats/counters.h"

namespace ebb {
namespace {

enum class Sweep { kNothing, kStep, kLater };

bool is_due(const Thread* thread, uint64_t now_ns) {
  if (now_ns == kSweepAllNow) return true;
  uint64_t interval = static_cast<uint64_t>(option(Option::k_hole_interval_ms)) * 1000000u;
  return thread->swept_ns == 0 || now_ns - thread->swept_ns >= interval;
}

// One class of one parked thread. The gate is held in kSweeping for that long; the registry's lock keeps the
// thread from ending meanwhile.
void sweep_class_locked(Thread* thread, uint64_t now_ns) {
  EBB_TEST_POINT("sweep.step");
  thread_release_class(thread, thread->sweep_class);
  if (++thread->sweep_class == kClassCount) {
    thread->sweep_class = 0;
    thread->touched = false;
    if (now_ns != kSweepAllNow) thread->swept_ns = now_ns;
    count(Counter::k_sweeps);
  }
}

Sweep sweep_step(uint64_t now_ns) {
  LockGuard guard(g_thread_lock);
  Sweep result = Sweep::kNothing;
  for (Thread* thread = g_threads; thread != nullptr; thread = thread->next) {
    if (thread->wants_back.load(std::memory_order_relaxed)) continue;
    uint32_t state = kParked;
    if (!thread->gate.compare_exchange_strong(state, kSweeping, std::memory_order_acquire, std::memory_order_relaxed)) {
      continue;
    }
    bool due = thread->touched && is_due(thread, now_ns);
    if (due) {
      sweep_class_locked(thread, now_ns);
      result = Sweep::kStep;
    } else if (thread->touched) {
      result = Sweep::kLater;
    }
    thread->gate.store(kParked, std::memory_order_release);
    if (thread->wants_back.load(std::memory_order_relaxed)) {
      os::wake(reinterpret_cast<const uint32_t*>(&thread->gate), 1);
    }
    if (due) return result;
  }
  return result;
}

// Punches one claimed page and makes it anybody's again.
size_t punch(Page* page) {
  size_t returned = 0;
  LockGuard guard(g_sweep_step_lock);
  if ((page->flags & kFlagSparse) != 0) {
    EBB_TEST_POINT("holes.claimed");
    page_fold_remote(page);
    page->flags &= static_cast<uint8_t>(~kFlagSparse);
    page->punched_live = static_cast<uint16_t>(page->countdown);
    if (page->countdown != 0) returned = page_punch_holes(page);
  }
  return returned;
}

size_t punch_list(Heap* heap, size_t cls) {
  size_t returned = 0;
  Page* anchor = nullptr;
  for (;;) {
    Page* page = page_claim_sparse(heap, cls, anchor);
    if (anchor != nullptr) page_release(anchor);
    if (page == nullptr) return returned;
    returned += punch(page);
    anchor = page;
  }
}

}  // namespace

bool sweep_parked_threads(uint64_t now_ns) {
  Sweep result;
  while ((result = sweep_step(now_ns)) == Sweep::kStep) {
  }
  return result == Sweep::kLater;
}

size_t punch_sparse_pages() {
  if (g_sparse_pages.exchange(0, std::memory_order_relaxed) == 0) return 0;
  size_t returned = 0;
  for (size_t cls = 0; cls < kClassCount; ++cls) returned += punch_list(&g_main_heap, cls);
  return returned;
}

}  // namespace ebb
