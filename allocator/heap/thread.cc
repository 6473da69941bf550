#include "heap/thread.h"

#include <new>

#include "arena/cage.h"
#include "base/test_point.h"
#include "heap/heap.h"
#include "heap/process.h"
#include "heap/shared_pages.h"
#include "page/remote.h"
#include "stats/counters.h"

namespace ebb {

constinit const ThreadHeap g_empty_heap{};

EBB_TLS constinit thread_local const ThreadHeap* tls_heap = &g_empty_heap;
EBB_TLS constinit thread_local OwnerId tls_owner = kNobodyHere;
EBB_TLS constinit thread_local Thread* tls_thread = nullptr;

constinit Lock g_thread_lock{LockRank::kThreadRegistry};
constinit Thread* g_threads = nullptr;
constinit std::atomic<bool> g_deferred{false};
void (*g_deferred_hook)() = nullptr;

namespace {

const uint32_t* gate_word(const Thread* thread) { return reinterpret_cast<const uint32_t*>(&thread->gate); }

void link_thread(Thread* thread) {
  LockGuard guard(g_thread_lock);
  thread->prev = nullptr;
  thread->next = g_threads;
  if (g_threads != nullptr) g_threads->prev = thread;
  g_threads = thread;
}

void unlink_thread(Thread* thread) {
  LockGuard guard(g_thread_lock);
  if (thread->next != nullptr) thread->next->prev = thread->prev;
  (thread->prev != nullptr ? thread->prev->next : g_threads) = thread->next;
}

// Puts the thread's list of one class back into its active page and gives both of its pages up.
void release_class(ThreadHeap* heap, size_t cls, bool recount) {
  Page* active = heap->active[cls];
  Page* spare = heap->spare[cls];
  Block* list = heap->free[cls];
  heap->active[cls] = heap->spare[cls] = nullptr;
  heap->free[cls] = nullptr;
  heap->samples.forget(cls);
  for (Page* page : {active, spare}) {
    if (page == nullptr) continue;
    if (recount) count_anew(page);
    if (page == active) page_put_list(page, list);
    page_release(page);
  }
}

}  // namespace

void count_anew(Page* page) {
  uint32_t free_blocks = 0;
  for (Block* block = page->free; block != nullptr; block = block->next) ++free_blocks;
  page->countdown = page->carved - page->hole_blocks - free_blocks;
}

Thread* thread_self() {
  if (EBB_LIKELY(tls_thread != nullptr)) return tls_thread;
  if (!process_start()) return nullptr;
  void* memory = meta_take(sizeof(Thread));
  if (memory == nullptr) return nullptr;
  Thread* thread = new (memory) Thread();
  thread->main.heap = &g_main_heap;
  thread->main.thread = thread;
  thread->current = &thread->main;
  link_thread(thread);
  tls_thread = thread;
  tls_heap = thread->current;
  tls_owner = thread->id();
  count(Counter::k_threads_made);
  // Last, as it may allocate: the thread can by now.
  process_watch_thread_end(thread);
  return thread;
}

bool Gate::enter_slow() {
  for (int spins = 0;; ++spins) {
    uint32_t state = thread_->gate.load(std::memory_order_relaxed);
    if (state == kBusy) return false;
    if (state == kParked || state == kSweeping) thread_unpark(thread_);
    if (state == kRunning && thread_->gate.compare_exchange_weak(state, kBusy, std::memory_order_acquire)) return true;
    // Frozen: a fork, or the end of a heap, is under way and takes well under a millisecond.
    if (spins > 64) os::wait(gate_word(thread_), state, 100000);
    cpu_relax();
  }
}

bool thread_freeze(Thread* thread) {
  if (tls_holds_every_lock) return thread->gate.load(std::memory_order_relaxed) == kFrozenParked;
  for (int spins = 0;; ++spins) {
    uint32_t state = kRunning;
    if (thread->gate.compare_exchange_weak(state, kFrozen, std::memory_order_acquire)) return false;
    if (state == kParked && thread->gate.compare_exchange_weak(state, kFrozenParked, std::memory_order_acquire)) {
      return true;
    }
    if (spins == 64) EBB_TEST_POINT("gate.freezing");
    if (spins > 64) os::wait(gate_word(thread), state, 50000);
    cpu_relax();
  }
}

void thread_thaw(Thread* thread) {
  if (tls_holds_every_lock) return;
  uint32_t state = thread->gate.load(std::memory_order_relaxed) == kFrozenParked ? kParked : kRunning;
  thread->gate.store(state, std::memory_order_release);
  os::wake(gate_word(thread), INT32_MAX);
}

namespace {

// The sweep pauses after the page at hand when it sees that the thread wants its heaps back.
EBB_COLD void wait_for_sweep(Thread* thread) {
  thread->wants_back.store(true, std::memory_order_relaxed);
  for (int spins = 0;; ++spins) {
    uint32_t state = kParked;
    if (thread->gate.compare_exchange_weak(state, kRunning, std::memory_order_acquire)) break;
    if (state == kRunning) break;
    if (spins > 256) os::wait(gate_word(thread), state, 1000000);
    cpu_relax();
  }
  thread->wants_back.store(false, std::memory_order_relaxed);
}

}  // namespace

void thread_unpark(Thread* thread) {
  uint32_t state = kParked;
  if (EBB_UNLIKELY(!thread->gate.compare_exchange_strong(state, kRunning, std::memory_order_acquire,
                                                         std::memory_order_relaxed))) {
    wait_for_sweep(thread);
  }
  tls_owner = thread->id();
  tls_heap = thread->current;
}

bool thread_release_class(Thread* thread, size_t cls) {
  handover_give_up(thread, false);
  release_class(&thread->main, cls, false);
  for (ThreadHeap* part = thread->heaps; part != nullptr; part = part->next) {
    if (thread->wants_back.load(std::memory_order_relaxed)) return false;
    release_class(part, cls, false);
  }
  return true;
}

void thread_heap_release(ThreadHeap* heap, bool recount) {
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    if (heap->active[cls] != nullptr || heap->spare[cls] != nullptr) release_class(heap, cls, recount);
  }
}

void thread_release_pages(Thread* thread, bool recount) {
  handover_give_up(thread, recount);
  thread_heap_release(&thread->main, recount);
  for (ThreadHeap* part = thread->heaps; part != nullptr; part = part->next) thread_heap_release(part, recount);
}

void thread_forget(Thread* thread) {
  unlink_thread(thread);
  thread_forget_unlinked(thread);
}

void thread_forget_unlinked(Thread* thread) {
  EBB_ASSERT(thread->heaps == nullptr && thread->handover.load(std::memory_order_relaxed) == nullptr);
  count(Counter::k_threads_gone);
  meta_give(thread, sizeof(Thread));
}

}  // namespace ebb
