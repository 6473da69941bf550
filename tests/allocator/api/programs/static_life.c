// A program that holds the archive and nothing else of Ebb: what the library does at load must happen here, too.
// Frees 64 MiB and waits until the scavenger has given them back; then a forked child allocates and frees.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBlocks = 16384, kBytes = 4096, kWaitSeconds = 30 };

static long resident_mib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) exit(3);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

static void fill_and_free(void) {
  static char* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) blocks[i] = memset(malloc(kBytes), i, kBytes);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
}

int main(void) {
  fill_and_free();
  time_t end = time(NULL) + kWaitSeconds;
  struct timespec pause = {.tv_nsec = 10000000};
  while (resident_mib() > 16 && time(NULL) < end) nanosleep(&pause, NULL);
  printf("resident after the free: %s\n", resident_mib() <= 16 ? "little" : "much");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    fill_and_free();
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  printf("child ends with %d\n", status);
  return 0;
}
