// 100: Blocks of 1 MiB of which one byte is written cost a page each: no range is handed out with huge
// pages asked for.
#include "case.h"

int main(void) {
  enum { kBlocks = 1024 };
  static char* blocks[kBlocks];
  size_t before = resident_bytes();
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = (char*)malloc(MIB);
    EXPECT(blocks[i], "no memory");
    blocks[i][MIB / 2] = 1;
  }
  size_t cost = resident_bytes() - before;
  EXPECT(cost < kBlocks * 12 * KIB + MIB, "%d bytes written make %zu MiB resident", kBlocks, cost / MIB);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  return 0;
}
