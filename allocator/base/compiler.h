// What the compiler is asked for, in one place. Used by every layer; no state.
#pragma once

#define EBB_LIKELY(x) __builtin_expect(!!(x), 1)
#define EBB_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EBB_NOINLINE __attribute__((noinline))
#define EBB_COLD __attribute__((cold, noinline))
#define EBB_INLINE inline __attribute__((always_inline))
// Everything the function calls is inlined into it: for the few slow paths whose calls cost as much as their work.
#define EBB_FLATTEN __attribute__((flatten))
// A symbol of the library's own, reached without the GOT.
#define EBB_HIDDEN __attribute__((visibility("hidden")))
#define EBB_EXPORT __attribute__((visibility("default")))
// Initial-exec: one load from the GOT and one from the thread pointer, and never a call into the dynamic
// linker (which may itself allocate).
#define EBB_TLS __attribute__((tls_model("initial-exec"), visibility("hidden")))

namespace ebb {

// Whether another thread that sees a store sees all that were made before it.
#if defined(__x86_64__)
constexpr bool kStoresKeepTheirOrder = true;
#else
constexpr bool kStoresKeepTheirOrder = false;
#endif

// Keeps the compiler from moving memory accesses across this point. Partner: fork, which snapshots the
// memory of threads that it does not stop (heap/fork.cc).
EBB_INLINE void compiler_barrier() { __asm__ volatile("" ::: "memory"); }

// Tells the processor that this is a spin loop.
EBB_INLINE void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace ebb
