// The C interface: argument checks and errno around heap/alloc.h. The C library's names are the same functions
// under another name, so that a preloaded Ebb has no further jump on its fast paths.
//
// Called by programs, from any thread, before main and after exit began included. Invariants: a free changes
// no errno, a refusal sets it (posix_memalign: returns it), and a refused resize leaves the block as it was.
#include "ebb/ebb.h"

#include <errno.h>

#include "api/alias.h"
#include "api/size_check.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "heap/alloc.h"
#include "scavenger/collect.h"
#include "scavenger/park.h"

using namespace ebb;

namespace {

bool multiply_overflows(size_t count, size_t size, size_t* product) {
  return __builtin_mul_overflow(count, size, product);
}

EBB_COLD void* refuse(int error) {
  errno = error;
  return nullptr;
}

// What posix_memalign does when no block is listed: apart, so that the usual case needs no frame.
EBB_NOINLINE int allocate_aligned_into(void** out, size_t alignment, size_t size) {
  int saved = errno;
  void* p = allocate_aligned_slow(alignment, size);
  errno = saved;
  if (EBB_UNLIKELY(p == nullptr)) return ENOMEM;
  *out = p;
  return 0;
}

}  // namespace

extern "C" {

EBB_EXPORT void* ebb_malloc(size_t size) { return allocate(size); }

EBB_EXPORT void* ebb_calloc(size_t count, size_t size) {
  size_t bytes;
  if (EBB_UNLIKELY(multiply_overflows(count, size, &bytes))) return refuse(ENOMEM);
  return allocate_zeroed(bytes);
}

EBB_EXPORT void* ebb_realloc(void* p, size_t size) {
  if (EBB_UNLIKELY(p == nullptr)) return allocate(size);
  if (EBB_UNLIKELY(size == 0)) {
    release(p);
    return nullptr;
  }
  return reallocate(p, size);
}

EBB_EXPORT void* ebb_reallocarray(void* p, size_t count, size_t size) {
  size_t bytes;
  if (EBB_UNLIKELY(multiply_overflows(count, size, &bytes))) return refuse(ENOMEM);
  return ebb_realloc(p, bytes);
}

EBB_EXPORT void* ebb_aligned_alloc(size_t alignment, size_t size) {
  if (EBB_UNLIKELY(!is_power_of_two(alignment))) return refuse(EINVAL);
  return allocate_aligned(alignment, size);
}

EBB_EXPORT int ebb_posix_memalign(void** out, size_t alignment, size_t size) {
  if (EBB_UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void*) != 0)) return EINVAL;
  void* p = allocate_aligned_listed(alignment, size);
  if (EBB_UNLIKELY(p == nullptr)) return allocate_aligned_into(out, alignment, size);
  *out = p;
  return 0;
}

EBB_EXPORT void* ebb_aligned_realloc(void* p, size_t alignment, size_t size) {
  if (EBB_UNLIKELY(!is_power_of_two(alignment))) return refuse(EINVAL);
  if (p == nullptr) return allocate_aligned(alignment, size);
  return reallocate_aligned(p, alignment, size);
}

EBB_EXPORT void ebb_free(void* p) { release(p); }

EBB_EXPORT void ebb_free_sized(void* p, size_t size) {
  check_size(p, size);
  release(p);
}

EBB_EXPORT void ebb_free_aligned_sized(void* p, size_t alignment, size_t size) {
  check_aligned(p, size, alignment);
  release(p);
}

EBB_EXPORT size_t ebb_usable_size(const void* p) { return usable_bytes(p); }

EBB_EXPORT size_t ebb_good_size(size_t size) { return good_bytes(size); }

EBB_EXPORT void ebb_collect(bool force) { collect(force); }

EBB_EXPORT bool ebb_park_begin(void) { return park_begin(); }

EBB_EXPORT void ebb_park_end(void) { park_end(); }

}  // extern "C"

// The C library's names. Those with __libc_ are reached by programs that wrapped malloc themselves and mean the
// real one; cfree is gone from headers but not from old binaries.
EBB_ALIAS(malloc, ebb_malloc, void*, size_t);
EBB_ALIAS(calloc, ebb_calloc, void*, size_t, size_t);
EBB_ALIAS(realloc, ebb_realloc, void*, void*, size_t);
EBB_ALIAS(reallocarray, ebb_reallocarray, void*, void*, size_t, size_t);
EBB_ALIAS(aligned_alloc, ebb_aligned_alloc, void*, size_t, size_t);
EBB_ALIAS(posix_memalign, ebb_posix_memalign, int, void**, size_t, size_t);
EBB_ALIAS(free, ebb_free, void, void*);
EBB_ALIAS(free_sized, ebb_free_sized, void, void*, size_t);
EBB_ALIAS(free_aligned_sized, ebb_free_aligned_sized, void, void*, size_t, size_t);
EBB_ALIAS(cfree, ebb_free, void, void*);
EBB_ALIAS(malloc_usable_size, ebb_usable_size, size_t, const void*);
EBB_ALIAS(__libc_malloc, ebb_malloc, void*, size_t);
EBB_ALIAS(__libc_calloc, ebb_calloc, void*, size_t, size_t);
EBB_ALIAS(__libc_realloc, ebb_realloc, void*, void*, size_t);
EBB_ALIAS(__libc_reallocarray, ebb_reallocarray, void*, void*, size_t, size_t);
EBB_ALIAS(__libc_free, ebb_free, void, void*);
EBB_ALIAS(__posix_memalign, ebb_posix_memalign, int, void**, size_t, size_t);
