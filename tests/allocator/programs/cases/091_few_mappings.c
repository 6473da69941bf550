// 91, 92: A process may have 65,530 mappings. Many blocks of 72 and 300 KiB, freed in a pattern that
// leaves holes and purged, need a few dozen, however many blocks there are; and a later request does not
// fail when the system refuses to give memory back. Argument: plain or exhausted.
#include "deny_syscall.h"

enum { kSmaller = 12000, kLarger = 6000, kMaps = 300 };

static char *smaller[kSmaller], *larger[kLarger];

static void fill(char** blocks, int count, size_t size) {
  for (int i = 0; i < count; ++i) {
    if (blocks[i]) continue;
    blocks[i] = (char*)malloc(size);
    EXPECT(blocks[i], "no memory for block %d of %zu bytes: errno %d", i, size, errno);
    blocks[i][0] = 1;
  }
}

static void free_two_of_three(char** blocks, int count, int keep) {
  for (int i = 0; i < count; ++i) {
    if (i % 3 == keep) continue;
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: few_mappings plain|exhausted");
  arm_watchdog(60);
  free(opaque(malloc(1)));
  if (strcmp(argv[1], "exhausted") == 0) deny_syscall(SYS_madvise, ENOMEM);
  for (int round = 0; round < 3; ++round) {
    fill(smaller, kSmaller, 72 * KIB + (size_t)round * 4096);
    fill(larger, kLarger, 300 * KIB - (size_t)round * 4096);
    free_two_of_three(smaller, kSmaller, round);
    free_two_of_three(larger, kLarger, round);
    malloc_trim(0);
    size_t maps = count_maps();
    EXPECT(maps <= kMaps, "%zu mappings in round %d", maps, round);
  }
  return 0;
}
