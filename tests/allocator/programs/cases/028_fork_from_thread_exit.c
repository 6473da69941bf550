// 28: Threads that are not the main thread fork, and their children leave through exit(), so that library
// destructors run on a thread that is not the one the library was initialised on.
#include "case.h"

static void* fork_some(void* unused) {
  (void)unused;
  for (int round = 0; round < 25; ++round) {
    pid_t child = fork();
    if (child == 0) {
      arm_watchdog(10);
      for (int i = 0; i < 100; ++i) {
        char* p = (char*)malloc((size_t)i * 37 + 1);
        EXPECT(p, "no memory in the child");
        memset(p, i, (size_t)i * 37 + 1);
        if (i % 3) free(p);
      }
      exit(0);
    }
    expect_child_succeeds(child);
  }
  return NULL;
}

int main(void) {
  arm_watchdog(60);
  pthread_t threads[4];
  free(opaque(malloc(10)));
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, fork_some, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return 0;
}
