// 35: The first allocation of a process happens in a vfork child, in its parent's memory; memory that the parent
// frees later must go back to the OS all the same.
#include "case.h"

static __attribute__((noinline)) void allocate_in_vfork_child(void) {
  pid_t child = vfork();
  if (child == 0) {
    free(opaque(malloc(100)));
    _exit(0);
  }
  expect_child_succeeds(child);
}

int main(void) {
  arm_watchdog(50);
  allocate_in_vfork_child();
  size_t before = resident_bytes();
  void* blocks[64];
  for (int i = 0; i < 64; ++i) {
    blocks[i] = malloc(256 * KIB);
    EXPECT(blocks[i], "no memory");
    memset(blocks[i], 1, 256 * KIB);
  }
  for (int i = 0; i < 64; ++i) free(blocks[i]);
  EXPECT(falls_below(before + 2 * MIB), "%zu KiB stay where %zu were", resident_bytes() / KIB, before / KIB);
  return 0;
}
