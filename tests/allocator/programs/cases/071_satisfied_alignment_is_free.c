// 71: An alignment that plain blocks of the size have anyway does not cost a bigger class, and page-aligned
// buffers of a page cost a page.
#include "case.h"

int main(void) {
  for (size_t alignment = 8; alignment <= 16; alignment *= 2)
    for (size_t size = 16; size <= 4096; size += 16) {
      void *plain = malloc(size), *aligned = memalign(alignment, size);
      EXPECT(malloc_usable_size(plain) == malloc_usable_size(aligned), "memalign(%zu, %zu) uses %zu bytes, malloc %zu",
             alignment, size, malloc_usable_size(aligned), malloc_usable_size(plain));
      free(plain);
      free(aligned);
    }
  enum { kBuffers = 20000 };
  static char* buffers[kBuffers];
  size_t before = resident_bytes();
  for (int i = 0; i < kBuffers; ++i) {
    buffers[i] = (char*)memalign(4096, 4096);
    EXPECT(buffers[i] && (uintptr_t)buffers[i] % 4096 == 0, "not page-aligned");
    memset(buffers[i], 1, 4096);
  }
  size_t cost = resident_bytes() - before;
  EXPECT(cost <= (size_t)kBuffers * 4096 / 20 * 21, "%d pages cost %zu KiB", kBuffers, cost / KIB);
  for (int i = 0; i < kBuffers; ++i) free(buffers[i]);
  return 0;
}
