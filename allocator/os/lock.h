// A mutual exclusion lock of four bytes on a futex.
//
// States: 0 free, 1 held, 2 held and somebody may sleep. Release stores pair with the acquire of the next
// holder. Never held over a call that may allocate. Debug builds check the order of ranks by thread.
//
// Around a fork the forking thread holds every lock (heap/fork.cc), and fork handlers of the program may allocate
// meanwhile: to that thread all locks are open then, and it leaves them as they are.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/compiler.h"
#include "base/lock_rank.h"
#include "os/os.h"

namespace ebb {

#if defined(EBB_DEBUG)
void lock_rank_enter(LockRank rank);
void lock_rank_leave(LockRank rank);
void lock_rank_forget_all();
#else
EBB_INLINE void lock_rank_enter(LockRank) {}
EBB_INLINE void lock_rank_leave(LockRank) {}
EBB_INLINE void lock_rank_forget_all() {}
#endif

// The calling thread is between the allocator's fork handlers.
EBB_TLS extern constinit thread_local bool tls_holds_every_lock;

class Lock {
 public:
  constexpr explicit Lock(LockRank rank) : rank_code_(code_of(rank)) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  EBB_INLINE void lock() {
    lock_rank_enter(rank());
    uint32_t expected = 0;
    if (EBB_UNLIKELY(!state_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                                     std::memory_order_relaxed))) {
      lock_slow();
    }
  }
  bool try_lock() {
    uint32_t expected = 0;
    if (!state_.compare_exchange_strong(expected, 1, std::memory_order_acquire, std::memory_order_relaxed) &&
        !tls_holds_every_lock) {
      return false;
    }
    lock_rank_enter(rank());
    return true;
  }
  EBB_INLINE void unlock() {
    if (EBB_UNLIKELY(tls_holds_every_lock)) return;
    lock_rank_leave(rank());
    open();
  }
  // The lock of a heap, which the caller holds; its memory was given back, which opened it. Does not touch it.
  void opened_by_purge() {
    lock_rank_leave(LockRank::kHeap);
    os::wake(word(), INT32_MAX);
  }
  // At the end of a fork, in the parent and in the child, by the thread that forked; also for a lock that it did not
  // take, of what was made since.
  void open_after_fork() { open(); }

 private:
  // Zero bytes are an open lock of a heap: see heap/heap_structures.h.
  static constexpr uint8_t code_of(LockRank rank) {
    return static_cast<uint8_t>(static_cast<uint8_t>(rank) ^ static_cast<uint8_t>(LockRank::kHeap));
  }
  LockRank rank() const { return static_cast<LockRank>(rank_code_ ^ static_cast<uint8_t>(LockRank::kHeap)); }

  EBB_COLD void lock_slow();
  EBB_INLINE void open() {
    if (EBB_UNLIKELY(state_.exchange(0, std::memory_order_release) == 2)) os::wake(word(), 1);
  }
  const uint32_t* word() const { return reinterpret_cast<const uint32_t*>(&state_); }

  std::atomic<uint32_t> state_{0};
  uint8_t rank_code_;
};

class LockGuard {
 public:
  EBB_INLINE explicit LockGuard(Lock& lock) : lock_(lock) { lock_.lock(); }
  EBB_INLINE ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace ebb
