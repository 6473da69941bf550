// The library that 040_dlclose_loop loads and unloads: it holds 1 MiB in blocks while it is loaded.
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 1024 };
static void* blocks[kBlocks];

__attribute__((constructor)) static void fill(void) {
  for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = malloc(1024), i, 1024);
}

__attribute__((destructor)) static void drop(void) {
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
}
