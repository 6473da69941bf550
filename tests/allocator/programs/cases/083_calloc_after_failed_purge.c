// 83: When giving memory back to the system fails, because it is locked or a filter refuses madvise, that
// memory still holds old bytes; calloc must zero it nevertheless. Argument: locked, refused or exhausted.
#include "deny_syscall.h"

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: calloc_after_failed_purge locked|refused|exhausted");
  arm_watchdog(60);
  free(opaque(malloc(1)));
  if (strcmp(argv[1], "locked") == 0)
    EXPECT(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0, "mlockall: errno %d", errno);
  if (strcmp(argv[1], "refused") == 0) deny_syscall(SYS_madvise, EPERM);
  if (strcmp(argv[1], "exhausted") == 0) deny_syscall(SYS_madvise, ENOMEM);
  uint64_t random = 7;
  for (int round = 0; round < 60; ++round) {
    size_t size = 64 * KIB + next_random(&random) % (8 * MIB);
    unsigned char* p = (unsigned char*)malloc(size);
    EXPECT(p, "no memory");
    memset(p, 0xa5, size);
    free(p);
    malloc_trim(0);
    p = (unsigned char*)calloc(1, size);
    EXPECT(p, "no memory");
    for (size_t i = 0; i < size; ++i) EXPECT(p[i] == 0, "byte %zu of calloc(1, %zu) is %#x", i, size, p[i]);
    free(p);
  }
  return 0;
}
