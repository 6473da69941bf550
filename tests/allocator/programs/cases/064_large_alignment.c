// 64: Any power of two that fits the address space is a legal alignment; one that does not fit is ENOMEM,
// and that at once.
#include "case.h"

static void try_alignment(size_t alignment, size_t size) {
  void* p = NULL;
  int error = posix_memalign(&p, alignment, size);
  EXPECT(error == 0, "posix_memalign(%zu, %zu) fails with %d", alignment, size, error);
  EXPECT((uintptr_t)p % alignment == 0, "%p is not aligned to %zu", p, alignment);
  EXPECT(malloc_usable_size(p) >= size, "usable size below %zu", size);
  ((char*)p)[0] = ((char*)p)[size - 1] = 1;
  char* moved = (char*)realloc(p, size + 100000);
  EXPECT(moved && moved[0] == 1 && moved[size - 1] == 1, "realloc lost an aligned block");
  free(moved);
}

int main(void) {
  arm_watchdog(30);
  for (size_t alignment = 16; alignment <= GIB; alignment *= 2) {
    try_alignment(alignment, 17);
    if (alignment <= 64 * MIB) try_alignment(alignment, alignment);
  }
  void* p = NULL;
  int error = posix_memalign(&p, (size_t)1 << 45, 17);
  EXPECT(error == ENOMEM || (error == 0 && (uintptr_t)p % ((size_t)1 << 45) == 0), "2^45: %d", error);
  if (error == 0) free(p);
  EXPECT(posix_memalign(&p, 24, 100) == EINVAL, "an alignment of 24 is accepted");
  EXPECT(posix_memalign(&p, 4, 100) == EINVAL, "an alignment below a pointer's size is accepted");
  return 0;
}
