// 73: Requests of PTRDIFF_MAX bytes and more are NULL with ENOMEM from every entry point, and realloc
// leaves the old block as it was.
#include "case.h"

#define EXPECT_REFUSED(call)                                               \
  do {                                                                     \
    errno = 0;                                                             \
    void* refused = opaque(call);                                          \
    EXPECT(refused == NULL, "%s gives a block for %zu bytes", #call, size); \
    EXPECT(errno == ENOMEM, "%s of %zu bytes: errno %d", #call, size, errno); \
  } while (0)

int main(void) {
  const size_t sizes[] = {(size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX};
  char* old = (char*)malloc(100);
  fill_pattern(old, 100);
  for (int i = 0; i < 4; ++i) {
    volatile size_t hidden = sizes[i];
    size_t size = hidden;
    EXPECT_REFUSED(malloc(size));
    EXPECT_REFUSED(calloc(1, size));
    EXPECT_REFUSED(calloc(size, 1));
    EXPECT_REFUSED(calloc(size, 16));
    EXPECT_REFUSED(realloc(old, size));
    EXPECT_REFUSED(realloc(NULL, size));
    EXPECT_REFUSED(reallocarray(old, size, 1));
    EXPECT_REFUSED(reallocarray(NULL, size / 2 + 1, 16));
    EXPECT_REFUSED(memalign(64, size));
    EXPECT_REFUSED(memalign(MIB, size));
    EXPECT_REFUSED(aligned_alloc(32, size));
    EXPECT_REFUSED(valloc(size));
    EXPECT_REFUSED(pvalloc(size));
    void* p = old;
    EXPECT(posix_memalign(&p, 64, size) == ENOMEM, "posix_memalign accepts %zu bytes", size);
    EXPECT(p == old, "posix_memalign wrote its result though it failed");
    check_pattern(old, 100);
  }
  free(old);
  return 0;
}
