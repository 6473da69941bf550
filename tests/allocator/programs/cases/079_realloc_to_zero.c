// 79: realloc(p, 0) frees p: its result is safe to free, and a million of them leave nothing behind;
// realloc(NULL, 0) and malloc(0) give distinct blocks that can be freed.
#include "case.h"

int main(void) {
  for (int i = 0; i < 1000; ++i) free(opaque(realloc(malloc(10), 0)));
  size_t before = resident_bytes();
  for (int i = 0; i < 1000000; ++i) {
    void* p = malloc(10);
    EXPECT(p, "no memory after %d rounds", i);
    free(opaque(realloc(p, 0)));
  }
  EXPECT(resident_bytes() < before + MIB, "a million realloc(p, 0) left %zu KiB", (resident_bytes() - before) / KIB);
  void* first = opaque(realloc(NULL, 0));
  void* second = opaque(malloc(0));
  EXPECT(first && second && first != second, "realloc(NULL, 0) and malloc(0) are not distinct blocks");
  free(first);
  free(second);
  return 0;
}
