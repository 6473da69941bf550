// A thread as Ebb sees it: its identity as an owner of pages, its heaps, and the gate to its slow path.
//
//            enter()                    leave()
//   kRunning ────────▶ kBusy ───────────────────▶ kRunning
//      │  ▲                                          │ ▲
//      │  │ park_end(), or an allocation while parked│ │ fork is over
//      ▼  │                                          ▼ │
//   kParked ──▶ kSweeping ──▶ kParked             kFrozen   (fork; from kParked: kFrozenParked)
//         scavenger, one page at a time
//
// Invariants:
//  1. Only the thread itself enters; only the holder of the gate (the thread in kBusy, the scavenger in
//     kSweeping, the forking thread in kFrozen) changes the thread's heaps and queues.
//  2. In kRunning the thread may be anywhere in a fast path, which changes free lists and countdowns of the
//     pages it owns and nothing else.
//  3. In kParked and kSweeping tls_heap is the empty heap and tls_owner is kNobodyHere, so the thread's own
//     fast paths do not touch its pages.
//  4. `touched` and `sweep_class` belong to the holder of the gate; the thread may read `touched` at any time.
//  5. A Thread is reused only after all its pages have another owner or none.
// tests/models/park.pml is this machine with all its interleavings.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.h"
#include "heap/thread_heap.h"
#include "os/lock.h"

namespace ebb {

enum GateState : uint32_t { kRunning = 0, kBusy, kParked, kSweeping, kFrozen, kFrozenParked };

class FirstClassHeap;
struct Subprocess;

// The part of a first-class heap that the thread used lately. Set under the thread's gate, by the thread for heaps
// that it uses, by others only to forget a heap that ends. So it may read an entry of a heap in use without its gate.
struct RecentPart {
  std::atomic<const Heap*> heap{nullptr};
  std::atomic<ThreadHeap*> part{nullptr};
};
constexpr size_t kRecentParts = 16;

// How far a thread has to go to its next sample; the thread's own (heap/sampling.h).
struct SampleCountdown {
  uint64_t left_bytes = 0;
  uint64_t random = 0;   // state of its generator; 0: not seeded
  uint32_t session = 0;  // of the sampling that drew left_bytes
};

struct Thread {
  std::atomic<uint32_t> gate{kRunning};
  std::atomic<bool> wants_back{false};  // parked, and waiting for the sweep to pause
  std::atomic<bool> touched{false};     // has been in the slow path since a sweep of it began
  uint16_t sweep_class = 0;             // where the sweep of the parked thread goes on
  uint64_t swept_ns = 0;                // when it was last swept
  ThreadHeap main;               // for the main heap
  ThreadHeap* heaps = nullptr;   // its parts of first-class heaps (heap/parts.h)
  ThreadHeap* current = nullptr; // what malloc uses: `main`, unless the program has set another
  // Pages of deleted heaps that are still this thread's, which may be freeing a block of one. It gives them up when it
  // next enters; others give up those that are empty (heap/handover.h). Linked by prev.
  std::atomic<Page*> handover{nullptr};
  std::atomic<uint32_t> handover_pages{0};  // in that list
  uint32_t handover_empty = 0;  // of them, those that were seen empty; under g_thread_lock
  Subprocess* subprocess = nullptr;  // what it has entered; null: the process's own world
  RecentPart recent[kRecentParts];
  SampleCountdown sampling;
  // The heaps that it last began to use, ended ones too: see trim_stale_tails in heap/parts.cc.
  FirstClassHeap* begun[2] = {};
  Thread* next = nullptr;        // registry
  Thread* prev = nullptr;

  OwnerId id() const { return reinterpret_cast<OwnerId>(this); }
};

// Read by malloc: the heap to allocate from. By free: the identity that local pages carry. Both are
// initial-exec, 24 bytes of static TLS in all.
EBB_TLS extern constinit thread_local const ThreadHeap* tls_heap;
EBB_TLS extern constinit thread_local OwnerId tls_owner;
EBB_TLS extern constinit thread_local Thread* tls_thread;

// The calling thread's structure, made at first use. Null when out of memory. Must not be called with any
// lock held.
Thread* thread_self();
inline Thread* thread_self_if_any() { return tls_thread; }

// Gives up the pages of Thread::handover (heap/handover.h).
EBB_COLD void handover_give_up(Thread* thread, bool recount);

// The gate of the calling thread, entered while this lives. is_open() is false when the thread was already
// inside: a signal handler has interrupted the slow path, and nothing may be touched.
class Gate {
 public:
  EBB_INLINE explicit Gate(Thread* thread) : thread_(thread) {
    uint32_t expected = kRunning;
    open_ = EBB_LIKELY(thread->gate.compare_exchange_strong(expected, kBusy, std::memory_order_acquire,
                                                            std::memory_order_relaxed)) ||
            enter_slow();
    thread->touched.store(true, std::memory_order_relaxed);
    if (EBB_UNLIKELY(thread->handover.load(std::memory_order_relaxed) != nullptr) && open_) handover_give_up(thread, false);
  }
  EBB_INLINE ~Gate() {
    if (EBB_LIKELY(open_)) leave();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  bool is_open() const { return open_; }

 private:
  EBB_COLD bool enter_slow();
  EBB_INLINE void leave() { thread_->gate.store(kRunning, std::memory_order_release); }

  Thread* thread_;
  bool open_;
};

// Gives up all pages of the thread; the caller holds its gate, or the thread is gone. With `recount`, the
// thread may have stopped in the middle of a fast path: countdowns are computed anew from the lists.
void thread_release_pages(Thread* thread, bool recount);

// The same for one of its parts.
void thread_heap_release(ThreadHeap* heap, bool recount);

// The thread may have stopped between linking a freed block and counting it.
void count_anew(Page* page);

// Forgets a thread whose pages are given up and that has left its heaps; its structure is reused by another thread.
void thread_forget(Thread* thread);
void thread_forget_unlinked(Thread* thread);  // the same for one that is in no registry any more

// Gives up the pages that a parked thread holds of one class, heap by heap. False: it stopped behind one of them, as
// the thread wants its heaps back.
bool thread_release_class(Thread* thread, size_t cls);

// Takes the calling thread's heaps back; it is parked, or being swept. Waits for one page's work at most.
void thread_unpark(Thread* thread);

// Keeps another thread out of its slow path. The caller holds g_thread_lock, so that the thread cannot end. Waits
// while it is in there. False: the thread is in a fast path or anywhere else; true: it is parked. During a fork all
// others are frozen already, and stay so.
bool thread_freeze(Thread* thread);
void thread_thaw(Thread* thread);

// All threads, for fork, statistics and the scavenger; guarded by g_thread_lock.
extern Lock g_thread_lock;
extern Thread* g_threads;

// ---- work put off to the end of a slow path ----

// Set (by the scavenger's arming hook) when something must be done that allocates or blocks, such as starting
// a thread; slow paths call run_deferred() once they hold nothing.
extern std::atomic<bool> g_deferred;
extern void (*g_deferred_hook)();
EBB_INLINE void run_deferred() {
  if (EBB_LIKELY(!g_deferred.load(std::memory_order_relaxed)) || g_deferred_hook == nullptr) return;
  if (!tls_holds_every_lock) g_deferred_hook();
}

}  // namespace ebb
