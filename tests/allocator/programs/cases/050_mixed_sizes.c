// 49, 50: Four threads allocate and free blocks of 1 KiB to 8 MiB while the memory calls that the
// allocator makes may be interposed by a library that allocates; it must neither hang nor recurse.
#include "case.h"

static void* work(void* argument) {
  uint64_t random = (uintptr_t)argument * 7919 + 1;
  enum { kSlots = 8 };
  unsigned char* slots[kSlots] = {0};
  size_t sizes[kSlots] = {0};
  for (int round = 0; round < 300; ++round) {
    int at = (int)(next_random(&random) % kSlots);
    if (slots[at]) {
      EXPECT(slots[at][0] == 5 && slots[at][sizes[at] - 1] == 5, "a block was overwritten");
      free(slots[at]);
    }
    sizes[at] = KIB << next_random(&random) % 14;
    slots[at] = (unsigned char*)malloc(sizes[at]);
    EXPECT(slots[at], "no memory");
    slots[at][0] = slots[at][sizes[at] - 1] = 5;
    for (size_t i = 0; i < sizes[at]; i += 4096) slots[at][i] = 5;
  }
  for (int i = 0; i < kSlots; ++i) free(slots[i]);
  return NULL;
}

int main(void) {
  arm_watchdog(20);
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  malloc_trim(0);
  return 0;
}
