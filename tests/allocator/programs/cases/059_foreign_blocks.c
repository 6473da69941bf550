// 59: A block that some other allocator handed out is given to free, realloc and malloc_usable_size; it
// must be recognised and reported, and not one byte at or around it changed.
#include "case.h"

static char* region;
static const size_t kRegionBytes = 256 << 10;

static int run_in_child(int which) {
  pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    char* foreign = (char*)opaque(region + 64 * KIB + 256);
    if (which == 0) free(foreign);
    if (which == 1) free(realloc(foreign, 500));
    if (which == 2) _exit(malloc_usable_size(foreign) == 0 ? 0 : 2);
    for (int i = 0; i < 1000; ++i) memset(opaque(malloc(64)), 1, 64);
    _exit(0);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child, "no child");
  return status;
}

int main(void) {
  region = (char*)mmap(NULL, kRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT(region != MAP_FAILED, "no region");
  memset(region, 0x5a, kRegionBytes);
  static const char* const kNames[] = {"free", "realloc", "malloc_usable_size"};
  for (int which = 0; which < 3; ++which) {
    int status = run_in_child(which);
    int reported = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    EXPECT(reported || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "%s of a foreign block: status %#x",
           kNames[which], (unsigned)status);
    for (size_t i = 0; i < kRegionBytes; ++i)
      EXPECT(region[i] == 0x5a, "%s wrote into a foreign block at %zu", kNames[which], i);
  }
  return 0;
}
