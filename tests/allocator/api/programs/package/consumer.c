// A C program that uses the installed package: prints the version, and 1 when malloc is Ebb's.
#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  void* volatile p = malloc(200);
  ebb_stats_t stats;
  int ours = ebb_stats_get(&stats, sizeof stats) && stats.live_blocks >= 1 && ebb_usable_size(p) == ebb_good_size(200);
  ebb_free(p);
  printf("%s %d\n", ebb_version(), ours);
  return ours ? 0 : 1;
}
