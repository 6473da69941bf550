// 65: Blocks smaller than their alignment, many at a time and among plain ones, are aligned, distinct and
// large enough.
#include "case.h"

enum { kBlocks = 1000 };

static void try_pair(size_t alignment, size_t size) {
  static unsigned char *aligned[kBlocks], *plain[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    EXPECT(posix_memalign((void**)&aligned[i], alignment, size) == 0, "no block");
    EXPECT((uintptr_t)aligned[i] % alignment == 0, "%p is not aligned to %zu", (void*)aligned[i], alignment);
    EXPECT(malloc_usable_size(aligned[i]) >= size, "usable size below %zu", size);
    fill_pattern(aligned[i], size);
    plain[i] = (unsigned char*)malloc(size);
    fill_pattern(plain[i], size);
  }
  for (int i = 0; i < kBlocks; ++i) {
    check_pattern(aligned[i], size);
    check_pattern(plain[i], size);
    memset(aligned[i], 0, size);
    memset(plain[i], 0, size);
  }
  for (int i = 0; i < kBlocks; ++i) {
    for (size_t b = 0; b < size; ++b) EXPECT(aligned[i][b] == 0 && plain[i][b] == 0, "blocks overlap");
    free(aligned[i]);
    free(plain[i]);
  }
}

int main(void) {
  try_pair(4096, 1);
  try_pair(65536, 100);
  try_pair(64, 8);
  return 0;
}
