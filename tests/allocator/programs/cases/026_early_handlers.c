// 26: A library whose constructor registers fork handlers, before or after the allocator's own, and whose
// handlers allocate: the allocator's handlers may have run already (prepare) or not yet (parent, child).
#include "case.h"

static void allocate_all_sizes(void) {
  void* blocks[64];
  int count = 0;
  for (size_t size = 24; size < 16 * MIB; size = size * 5 / 4 + 8) {
    blocks[count] = malloc(size);
    EXPECT(blocks[count], "no %zu bytes in a fork handler", size);
    fill_pattern(blocks[count], size < KIB ? size : KIB);
    ++count;
  }
  for (int i = 0; i < count; ++i) free(blocks[i]);
  malloc_trim(0);
}

__attribute__((constructor)) static void register_handlers(void) {
  EXPECT(pthread_atfork(allocate_all_sizes, allocate_all_sizes, allocate_all_sizes) == 0, "handlers were refused");
}
