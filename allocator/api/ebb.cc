// The C interface: argument checks and errno around heap/alloc.h. The C library's names are the same functions
// under another name, so that a preloaded Ebb has no further jump on its fast paths.
#include "ebb/ebb.h"

#include <errno.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "heap/alloc.h"
#include "heap/misuse.h"
#include "os/os.h"

using namespace ebb;

namespace {

bool multiply_overflows(size_t count, size_t size, size_t* product) {
  return __builtin_mul_overflow(count, size, product);
}

EBB_COLD void* refuse(int error) {
  errno = error;
  return nullptr;
}

// Debug builds compare what the caller says with what the block is.
inline void check_size([[maybe_unused]] void* p, [[maybe_unused]] size_t size) {
#if defined(EBB_DEBUG)
  if (p != nullptr && good_bytes(size) > usable_bytes(p)) report_wrong_size(p, size, usable_bytes(p));
#endif
}

}  // namespace

// `alias` is the C library's name of the function; the builds that only have ebb_ names leave it out.
#if defined(EBB_OVERRIDE)
#define EBB_ALIAS(name, result, ...) \
  extern "C" EBB_EXPORT result name(__VA_ARGS__) __attribute__((alias("ebb_" #name), nothrow))
#else
#define EBB_ALIAS(name, result, ...) static_assert(true)
#endif

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
  int saved = errno;
  void* p = allocate_aligned(alignment, size);
  errno = saved;
  if (EBB_UNLIKELY(p == nullptr)) return ENOMEM;
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
  (void)alignment;
  check_size(p, size);
  release(p);
}

EBB_EXPORT size_t ebb_usable_size(const void* p) { return usable_bytes(p); }

EBB_EXPORT size_t ebb_good_size(size_t size) { return good_bytes(size); }

EBB_EXPORT void ebb_collect(bool force) { collect(force); }

}  // extern "C"

EBB_ALIAS(malloc, void*, size_t);
EBB_ALIAS(calloc, void*, size_t, size_t);
EBB_ALIAS(realloc, void*, void*, size_t);
EBB_ALIAS(reallocarray, void*, void*, size_t, size_t);
EBB_ALIAS(aligned_alloc, void*, size_t, size_t);
EBB_ALIAS(posix_memalign, int, void**, size_t, size_t);
EBB_ALIAS(free, void, void*);
EBB_ALIAS(free_sized, void, void*, size_t);
EBB_ALIAS(free_aligned_sized, void, void*, size_t, size_t);
