// 43: Waves of short threads each grow a buffer by realloc many times; page faults must follow the memory
// that is live at once, not the number of threads.
#include "case.h"

static void* grow(void* unused) {
  (void)unused;
  for (int i = 0; i < 40; ++i) {
    char* p = NULL;
    for (size_t size = 4 * KIB; size <= MIB; size *= 4) {
      p = (char*)realloc(p, size);
      EXPECT(p, "no memory");
      for (size_t at = 0; at < size; at += 4 * KIB) p[at] = 1;
    }
    free(p);
  }
  return NULL;
}

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

int main(void) {
  arm_watchdog(60);
  long before = faults();
  for (int wave = 0; wave < 60; ++wave) {
    pthread_t threads[8];
    for (int i = 0; i < 8; ++i) EXPECT(pthread_create(&threads[i], NULL, grow, NULL) == 0, "no thread");
    for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  }
  // Eight buffers of 1 MiB and their predecessors are 2,700 pages; each of 480 threads also faults in its
  // stack and thread block. A fault for each page of each thread's buffers would be 160,000.
  long after = faults() - before;
  EXPECT(after < 30000, "%ld page faults", after);
  return 0;
}
