// 116: A core dump is in proportion to what is live: address space that is only reserved, memory that was never
// used, and memory that went back to the system are not written. Dumps its core in the working directory.
#include "case.h"
#include <sys/prctl.h>

enum { kBlocks = 200000, kKeptOf = 64, kBuffers = 64 };

static char* blocks[kBlocks];
static char* buffers[kBuffers];

int main(void) {
  arm_watchdog(60);
  struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  EXPECT(setrlimit(RLIMIT_CORE, &all) == 0, "setrlimit: errno %d", errno);
  EXPECT(prctl(PR_SET_DUMPABLE, 1) == 0, "prctl: errno %d", errno);
  size_t before = resident_bytes();
  for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = (char*)malloc(1000), 1, 1000);
  for (int i = 0; i < kBuffers; ++i) memset(buffers[i] = (char*)malloc(2 * MIB), 1, 2 * MIB);
  size_t peak = resident_bytes();
  EXPECT(peak > before + 300 * MIB, "only %zu MiB at the peak", peak / MIB);
  for (int i = 0; i < kBlocks; ++i) {
    if (i % kKeptOf != 0) free(blocks[i]);
  }
  for (int i = 0; i < kBuffers; ++i) free(buffers[i]);
  free(opaque(malloc(100)));
  EXPECT(falls_below(before + 40 * MIB), "%zu MiB stay resident", resident_bytes() / MIB);
  printf("%zu\n", resident_bytes());
  fflush(stdout);
  abort();
}
