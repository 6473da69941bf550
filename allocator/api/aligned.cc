// The older names for aligned memory: memalign, valloc, pvalloc and what glibc exports of them. In builds that
// replace malloc only. Any thread. Where glibc's manual leaves a case open, glibc's behaviour is kept, as
// unmodified programs were tested against it.
#include "api/alias.h"

#if defined(EBB_OVERRIDE)

#include <errno.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/units.h"
#include "heap/alloc.h"
#include "os/os.h"

using namespace ebb;

namespace {

EBB_COLD void* refuse(int error) {
  errno = error;
  return nullptr;
}

}  // namespace

extern "C" {

// An alignment that is no power of two is rounded up to the next one; EINVAL when there is none.
EBB_EXPORT void* memalign(size_t alignment, size_t size) noexcept {
  if (EBB_UNLIKELY(!is_power_of_two(alignment))) {
    if (alignment > SIZE_MAX / 2 + 1) return refuse(EINVAL);
    alignment = alignment == 0 ? kBlockAlign : size_t{2} << floor_log2(alignment);
  }
  return allocate_aligned(alignment, size);
}

EBB_EXPORT void* valloc(size_t size) noexcept { return allocate_aligned(os::page_bytes(), size); }

// Whole OS pages: a size of 0 is one of them.
EBB_EXPORT void* pvalloc(size_t size) noexcept {
  if (EBB_UNLIKELY(size > kMaxRequestBytes)) return refuse(ENOMEM);
  return allocate_aligned(os::page_bytes(), align_up(max_of<size_t>(size, 1), os::page_bytes()));
}

}  // extern "C"

EBB_ALIAS(__libc_memalign, memalign, void*, size_t, size_t);
EBB_ALIAS(__libc_valloc, valloc, void*, size_t);
EBB_ALIAS(__libc_pvalloc, pvalloc, void*, size_t);

#endif
