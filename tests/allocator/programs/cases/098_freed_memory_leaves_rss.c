// 98: Memory that is given back shows in RSS: what was freed and purged is neither resident nor counted
// as lazily free.
#include "case.h"

int main(void) {
  arm_watchdog(60);
  enum { kBlocks = 100 };
  static char* blocks[kBlocks];
  size_t before = resident_bytes();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = (char*)malloc(2000000), 1, 2000000);
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  }
  // Small activity only from here on; polling itself allocates nothing.
  free(opaque(malloc(100)));
  EXPECT(falls_below(before + 20 * MIB), "%zu MiB stay resident", resident_bytes() / MIB);
  size_t lazy = proc_bytes("/proc/self/smaps_rollup", "LazyFree");
  EXPECT(lazy <= MIB, "%zu MiB are only lazily free", lazy / MIB);
  return 0;
}
