// 74: A size just below SIZE_MAX, what a negative number becomes, never wraps round to a small block when
// a header, a rounding or an alignment is added.
#include "case.h"

int main(void) {
  void* old = malloc(64);
  for (volatile size_t below = 1; below <= 8192; ++below) {
    size_t size = (size_t)0 - below;
    EXPECT(opaque(malloc(size)) == NULL, "malloc(-%zu) gives a block", (size_t)below);
    EXPECT(opaque(memalign(64, size)) == NULL, "memalign(64, -%zu) gives a block", (size_t)below);
    EXPECT(opaque(realloc(old, size)) == NULL, "realloc(p, -%zu) gives a block", (size_t)below);
    EXPECT(opaque(pvalloc(size)) == NULL, "pvalloc(-%zu) gives a block", (size_t)below);
    EXPECT(opaque(calloc(size, 1)) == NULL, "calloc(-%zu, 1) gives a block", (size_t)below);
  }
  free(old);
  return 0;
}
