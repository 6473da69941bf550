// 35: A child of vfork or clone(CLONE_VM | CLONE_VFORK) allocates and frees in its parent's memory before
// it ends, also blocks of its parent's; the parent's heap must stay whole.
#include "case.h"
#include <sched.h>

enum { kBlocks = 100 };

static unsigned char* parent_blocks[kBlocks];
static size_t sizes[kBlocks];

static void refill(uint64_t* random) {
  for (int i = 0; i < kBlocks; ++i) {
    if (parent_blocks[i]) continue;
    sizes[i] = 1 + next_random(random) % 3000;
    parent_blocks[i] = (unsigned char*)malloc(sizes[i]);
    EXPECT(parent_blocks[i], "no memory");
    fill_pattern(parent_blocks[i], sizes[i]);
  }
}

static int use_heap(void* unused) {
  (void)unused;
  void* mine[kBlocks];
  for (int i = 0; i < kBlocks; ++i) mine[i] = opaque(malloc((size_t)i * 29 + 8));
  for (int i = 0; i < kBlocks; i += 7) {
    free(parent_blocks[i]);
    parent_blocks[i] = NULL;
  }
  for (int i = 0; i < kBlocks; ++i) free(mine[i]);
  return 0;
}

// In functions of their own: what main keeps in registers must not be shared with the child.
static __attribute__((noinline)) pid_t start_by_vfork(void) {
  pid_t child = vfork();
  if (child == 0) {
    use_heap(NULL);
    _exit(0);
  }
  return child;
}

static __attribute__((noinline)) pid_t start_by_clone(void) {
  static char stack[64 << 10] __attribute__((aligned(16)));
  return clone(use_heap, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
}

int main(void) {
  arm_watchdog(60);
  uint64_t random = 42;
  for (int round = 0; round < 1500; ++round) {
    refill(&random);
    pid_t child = round % 2 ? start_by_vfork() : start_by_clone();
    EXPECT(child > 0, "no child: errno %d", errno);
    expect_child_succeeds(child);
    for (int i = 0; i < kBlocks; ++i)
      if (parent_blocks[i]) check_pattern(parent_blocks[i], sizes[i]);
  }
  return 0;
}
