// 19: Under a limit, many small blocks are freed just before one huge request: what is free goes back before the new
// memory is used, so that nobody runs out. Argument: the file of a control group of 640 MiB by which one joins it.
#include "case.h"

enum { kBlocks = 450 * 256, kKeptOf = 5000 };

static char* blocks[kBlocks];

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: burst_before_huge_request <cgroup.procs>");
  arm_watchdog(60);
  int fd = open(argv[1], O_WRONLY | O_CLOEXEC);
  EXPECT(fd >= 0 && write(fd, "0", 1) == 1, "cannot join %s: errno %d", argv[1], errno);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      if (!blocks[i]) memset(blocks[i] = (char*)malloc(4000), 1, 4000);
    }
    for (int i = 0; i < kBlocks; ++i) {
      if (i % kKeptOf == 0) continue;
      free(blocks[i]);
      blocks[i] = NULL;
    }
    char* huge = (char*)malloc(400 * MIB);
    EXPECT(huge, "no memory");
    opaque(memset(huge, 1, 400 * MIB));
    free(huge);
  }
  return 0;
}
