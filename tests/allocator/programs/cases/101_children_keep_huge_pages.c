// 101: A process that allocates does not switch huge pages off for the programs it starts. Run with the
// argument `child`, prints nothing and exits with 1 when they are off.
#include "case.h"
#include <sys/prctl.h>

int main(int argc, char** argv) {
  if (argc == 2) {
    int disabled = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    EXPECT(disabled == 0, "huge pages are disabled in a child: %d", disabled);
    return 0;
  }
  memset(opaque(malloc(10 * MIB)), 1, 10 * MIB);
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "child", (char*)NULL);
    _exit(9);
  }
  expect_child_succeeds(child);
  return 0;
}
