// 95: With all present and future memory locked, the footprint follows use: a reservation must not become
// resident. Argument: all, onfault, or limited (8 MiB of RLIMIT_MEMLOCK and no privilege).
#include "case.h"
#include <sys/prctl.h>

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: mlockall all|onfault|limited");
  arm_watchdog(60);
  if (strcmp(argv[1], "limited") == 0) {
    struct rlimit limit = {8 * MIB, 8 * MIB};
    EXPECT(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit: errno %d", errno);
    EXPECT(setuid(65534) == 0, "setuid: errno %d", errno);
  }
  int flags = MCL_CURRENT | MCL_FUTURE | (strcmp(argv[1], "onfault") == 0 ? MCL_ONFAULT : 0);
  int locked = mlockall(flags) == 0;
  EXPECT(locked || strcmp(argv[1], "limited") == 0, "mlockall: errno %d", errno);
  // Where the limit refuses MCL_CURRENT the future alone may still be locked, and later growth then fails.
  if (!locked) mlockall(MCL_FUTURE);
  static void* blocks[10000];
  for (int i = 0; i < 10000; ++i) {
    blocks[i] = malloc(100);
    EXPECT(blocks[i], "no block %d under locked memory", i);
    memset(blocks[i], 1, 100);
  }
  size_t resident = resident_bytes();
  EXPECT(resident < 48 * MIB, "1 MB of blocks makes %zu MiB resident", resident / MIB);
  for (int i = 0; i < 10000; ++i) free(blocks[i]);
  return 0;
}
