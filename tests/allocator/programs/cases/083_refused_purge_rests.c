// 83: Memory that the system refuses to take back, because it is locked or a filter forbids madvise, is not tried
// again and again: an idle process rests. Needs Ebb's statistics. Argument: locked or refused.
#include "deny_syscall.h"
#include <dlfcn.h>

typedef size_t (*stats_json)(char* buffer, size_t capacity);

static unsigned long count_of(stats_json read, const char* name) {
  static char text[1 << 16];
  read(text, sizeof text);
  char* at = strstr(text, name);
  EXPECT(at, "no count %s", name);
  return strtoul(at + strlen(name), NULL, 10);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: refused_purge_rests locked|refused");
  arm_watchdog(60);
  stats_json read = (stats_json)dlsym(RTLD_DEFAULT, "ebb_stats_json");
  EXPECT(read, "the allocator has no ebb_stats_json");
  free(opaque(malloc(1)));
  if (strcmp(argv[1], "locked") == 0)
    EXPECT(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0, "mlockall: errno %d", errno);
  if (strcmp(argv[1], "refused") == 0) deny_syscall(SYS_madvise, EPERM);
  for (int i = 0; i < 16; ++i) free(memset(malloc((size_t)(i + 1) * MIB), 1, (size_t)(i + 1) * MIB));
  struct timespec pause = {0, 20 * 1000 * 1000};
  unsigned long refused;
  while ((refused = count_of(read, "\"purges_refused\":")) == 0) nanosleep(&pause, NULL);
  // Every pass ends: from then on no more begin.
  unsigned long passes = count_of(read, "\"purge_passes\":"), before;
  do {
    before = passes;
    for (int i = 0; i < 10; ++i) nanosleep(&pause, NULL);
    passes = count_of(read, "\"purge_passes\":");
  } while (passes != before);
  refused = count_of(read, "\"purges_refused\":");
  EXPECT(refused <= 16 * 5, "%lu tries for 136 MiB", refused);
  return 0;
}
