// 76: A request whose page count does not fit 32 bits is refused, or its last byte is really there.
#include "case.h"

static void try_block(void* block, size_t size) {
  char* p = (char*)opaque(block);
  if (!p) return;
  EXPECT(malloc_usable_size(p) >= size, "a block of %zu GiB has %zu usable bytes", size / GIB, malloc_usable_size(p));
  p[0] = 1;
  p[size - 1] = 2;
  free(p);
}

int main(void) {
  arm_watchdog(30);
  size_t before = resident_bytes();
  try_block(memalign(4096, (((size_t)1 << 32) + 1) * 4096), (((size_t)1 << 32) + 1) * 4096);
  for (int bits = 34; bits <= 47; ++bits) try_block(malloc((size_t)1 << bits), (size_t)1 << bits);
  EXPECT(resident_bytes() < before + 64 * MIB, "%zu MiB are resident for blocks never touched", resident_bytes() / MIB);
  void* p = malloc(100);
  EXPECT(p, "no small block after refused large ones");
  free(p);
  return 0;
}
