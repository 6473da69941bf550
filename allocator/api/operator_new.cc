// All forms of operator new and delete that a program may replace, twenty, defined as a set: none of the
// runtime's own is left to be mixed with them.
// In builds that replace malloc only. Any thread.
//
// Built without exceptions, so that the fast paths have no frame; what fails goes to api/new_failure.cc, whose
// exceptions pass through by the unwind tables. The array forms are the plain ones under another name.
#if defined(EBB_OVERRIDE)

#include <new>

#include "api/new_failure.h"
#include "api/size_check.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/units.h"
#include "heap/alloc.h"

using namespace ebb;

// The mangled names below spell size_t as unsigned long.
static_assert(sizeof(size_t) == sizeof(unsigned long));

namespace {

EBB_NOINLINE void* new_slow(std::size_t size) {
  void* p = allocate(size);
  return EBB_LIKELY(p != nullptr) ? p : new_failed(size, kBlockAlign);
}

EBB_NOINLINE void* new_slow_nothrow(std::size_t size) noexcept {
  void* p = allocate(size);
  return EBB_LIKELY(p != nullptr) ? p : new_failed_nothrow(size, kBlockAlign);
}

EBB_INLINE void* aligned(std::size_t size, std::align_val_t alignment) {
  size_t bytes = static_cast<size_t>(alignment);
  return EBB_LIKELY(is_power_of_two(bytes)) ? allocate_aligned(bytes, size) : nullptr;
}

}  // namespace

// ---- new ----

EBB_EXPORT void* operator new(std::size_t size) {
  void* p = allocate_listed(size);
  return EBB_LIKELY(p != nullptr) ? p : new_slow(size);
}

EBB_EXPORT void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* p = allocate_listed(size);
  return EBB_LIKELY(p != nullptr) ? p : new_slow_nothrow(size);
}

EBB_EXPORT void* operator new(std::size_t size, std::align_val_t alignment) {
  void* p = aligned(size, alignment);
  return EBB_LIKELY(p != nullptr) ? p : new_failed(size, static_cast<size_t>(alignment));
}

EBB_EXPORT void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  void* p = aligned(size, alignment);
  return EBB_LIKELY(p != nullptr) ? p : new_failed_nothrow(size, static_cast<size_t>(alignment));
}

// The compiler folds functions of equal bodies into jumps to one of them; names cost nothing.
#define EBB_SAME_AS(target) __attribute__((alias(target)))

// ---- delete ----

EBB_EXPORT void operator delete(void* p) noexcept { release(p); }

#if defined(EBB_DEBUG) || defined(EBB_SECURE)

EBB_EXPORT void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }

EBB_EXPORT void operator delete(void* p, std::size_t size) noexcept {
  check_size(p, size);
  release(p);
}

EBB_EXPORT void operator delete(void* p, std::align_val_t alignment) noexcept {
  check_aligned(p, 0, static_cast<size_t>(alignment));
  release(p);
}

EBB_EXPORT void operator delete(void* p, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  check_aligned(p, 0, static_cast<size_t>(alignment));
  release(p);
}

EBB_EXPORT void operator delete(void* p, std::size_t size, std::align_val_t alignment) noexcept {
  check_aligned(p, size, static_cast<size_t>(alignment));
  release(p);
}

#else

// What else a form is told is for the checks above: each is the plain one, whatever its further parameters.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wattribute-alias"
#endif
EBB_EXPORT void operator delete(void*, const std::nothrow_t&) noexcept EBB_SAME_AS("_ZdlPv");
EBB_EXPORT void operator delete(void*, std::size_t) noexcept EBB_SAME_AS("_ZdlPv");
EBB_EXPORT void operator delete(void*, std::align_val_t) noexcept EBB_SAME_AS("_ZdlPv");
EBB_EXPORT void operator delete(void*, std::align_val_t, const std::nothrow_t&) noexcept EBB_SAME_AS("_ZdlPv");
EBB_EXPORT void operator delete(void*, std::size_t, std::align_val_t) noexcept EBB_SAME_AS("_ZdlPv");

#endif

// ---- arrays ----

EBB_EXPORT void* operator new[](std::size_t) EBB_SAME_AS("_Znwm");
EBB_EXPORT void* operator new[](std::size_t, const std::nothrow_t&) noexcept EBB_SAME_AS("_ZnwmRKSt9nothrow_t");
EBB_EXPORT void* operator new[](std::size_t, std::align_val_t) EBB_SAME_AS("_ZnwmSt11align_val_t");
EBB_EXPORT void* operator new[](std::size_t, std::align_val_t, const std::nothrow_t&) noexcept
    EBB_SAME_AS("_ZnwmSt11align_val_tRKSt9nothrow_t");
EBB_EXPORT void operator delete[](void*) noexcept EBB_SAME_AS("_ZdlPv");
EBB_EXPORT void operator delete[](void*, const std::nothrow_t&) noexcept EBB_SAME_AS("_ZdlPvRKSt9nothrow_t");
EBB_EXPORT void operator delete[](void*, std::size_t) noexcept EBB_SAME_AS("_ZdlPvm");
EBB_EXPORT void operator delete[](void*, std::align_val_t) noexcept EBB_SAME_AS("_ZdlPvSt11align_val_t");
EBB_EXPORT void operator delete[](void*, std::align_val_t, const std::nothrow_t&) noexcept
    EBB_SAME_AS("_ZdlPvSt11align_val_tRKSt9nothrow_t");
EBB_EXPORT void operator delete[](void*, std::size_t, std::align_val_t) noexcept EBB_SAME_AS("_ZdlPvmSt11align_val_t");

#endif
