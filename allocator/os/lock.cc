#include "os/lock.h"

#include "base/test_point.h"

namespace ebb {

EBB_TLS constinit thread_local bool tls_holds_every_lock = false;

void Lock::lock_slow() {
  if (tls_holds_every_lock) return;
  // Critical sections are some hundred instructions: spin for about as long before sleeping.
  constexpr int kSpins = 128;
  for (int i = 0; i < kSpins; ++i) {
    uint32_t expected = 0;
    if (state_.load(std::memory_order_relaxed) == 0 &&
        state_.compare_exchange_weak(expected, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
    cpu_relax();
  }
  EBB_TEST_POINT("lock.wait");
  while (state_.exchange(2, std::memory_order_acquire) != 0) os::wait(word(), 2, UINT64_MAX);
}

#if defined(EBB_DEBUG)
namespace {
// Number of locks held by this thread, by rank. Gates and heaps may be held in numbers (fork holds all).
EBB_TLS thread_local uint16_t tls_held[16];
}  // namespace

void lock_rank_enter(LockRank rank) {
  if (tls_holds_every_lock) return;
  for (size_t above = static_cast<size_t>(rank) + 1; above < 16; ++above) EBB_CHECK(tls_held[above] == 0);
  ++tls_held[static_cast<size_t>(rank)];
}

void lock_rank_forget_all() {
  for (uint16_t& held : tls_held) held = 0;
}

void lock_rank_leave(LockRank rank) {
  EBB_CHECK(tls_held[static_cast<size_t>(rank)] > 0);
  --tls_held[static_cast<size_t>(rank)];
}
#endif

}  // namespace ebb
