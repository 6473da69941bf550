// 89: Under RLIMIT_AS the program starts, uses at least three quarters of the limit, then gets NULL and
// ENOMEM, and small requests still work. Argument: the limit in MiB, which prlimit has set.
#include "case.h"

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: address_space_limit MIB");
  arm_watchdog(60);
  size_t limit = (size_t)atol(argv[1]) * MIB;
  struct rlimit in_force;
  getrlimit(RLIMIT_AS, &in_force);
  EXPECT(in_force.rlim_cur == limit, "the limit is not in force");
  static void* blocks[200000];
  size_t count = 0;
  errno = 0;
  while (count < 200000 && (blocks[count] = malloc(100000))) ++count;
  EXPECT(errno == ENOMEM, "errno is %d when memory runs out", errno);
  // Program, libc and their stacks take about 8 MiB of the address space themselves.
  EXPECT(count * 100000 >= (limit - 8 * MIB) / 4 * 3, "%zu MiB of %zu MiB could be allocated",
         count * 100000 / MIB, limit / MIB);
  for (int i = 0; i < 50; ++i) EXPECT(malloc(16), "no small block after memory ran out");
  errno = 0;
  EXPECT(opaque(malloc(1024 * GIB)) == NULL && errno == ENOMEM, "1 TiB under a limit: errno %d", errno);
  while (count > 0) free(blocks[--count]);
  void* p = malloc(limit / 4);
  EXPECT(p, "no block of a quarter of the limit after all was freed");
  free(p);
  return 0;
}
