/* What a program can ask of Ebb about its own memory: figures, and everything as JSON, without allocating.
 *
 *   cc statistics.c $(pkg-config --cflags --libs ebb) && ./a.out
 */
#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>

static size_t live_bytes(void) {
  ebb_stats_t stats;
  return ebb_stats_get(&stats, sizeof stats) ? stats.live_bytes : 0;
}

int main(void) {
  enum { kBlocks = 1000 };
  void* blocks[kBlocks];
  size_t before = live_bytes();
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(1000);
  fprintf(stderr, "1000 blocks of 1000 bytes hold %zu bytes\n", live_bytes() - before);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  ebb_collect(true);
  static char text[64 * 1024];
  if (ebb_stats_json(text, sizeof text) >= sizeof text) return 1;
  puts(text);
  return 0;
}
