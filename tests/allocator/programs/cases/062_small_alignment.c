// 62: Compilers take malloc's result to be aligned for every type, so 16 bytes on x86-64 for each size
// from 16 bytes; smaller blocks too, as a compiler may zero them with 16-byte stores.
#include "case.h"

int main(void) {
  static void* blocks[1000];
  for (size_t size = 1; size <= 512; ++size) {
    for (int i = 0; i < 1000; ++i) {
      blocks[i] = malloc(size);
      EXPECT(((uintptr_t)blocks[i] & 15) == 0, "malloc(%zu) is aligned to %zu only", size,
             (size_t)((uintptr_t)blocks[i] & -(uintptr_t)blocks[i]));
    }
    for (int i = 0; i < 1000; ++i) free(blocks[i]);
  }
  void* p = calloc(1, 9);
  EXPECT(((uintptr_t)p & 15) == 0, "calloc(1, 9) is not aligned to 16");
  p = realloc(p, 5);
  EXPECT(((uintptr_t)p & 15) == 0, "realloc(p, 5) is not aligned to 16");
  free(p);
  return 0;
}
