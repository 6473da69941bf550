// 25: A child forked while other threads allocate calls setenv, which reallocates memory of the parent's,
// before it execs; a lock left held by a thread that is gone hangs it.
#include "case.h"

static volatile int stop;

static void* churn(void* unused) {
  (void)unused;
  while (!stop) free(opaque(malloc(64 + (size_t)rand() % 4000)));
  return NULL;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, churn, NULL);
  setenv("FROM_PARENT", "a value that the parent allocated", 1);
  for (int round = 0; round < 150; ++round) {
    pid_t child = fork();
    if (child == 0) {
      arm_watchdog(10);
      char name[32];
      for (int i = 0; i < 20; ++i) {
        snprintf(name, sizeof name, "VARIABLE_%d", i);
        setenv(name, "a value of some length, so that it is a block of its own", 1);
      }
      unsetenv("LD_PRELOAD");
      execl("/bin/true", "true", (char*)NULL);
      _exit(9);
    }
    expect_child_succeeds(child);
  }
  stop = 1;
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return 0;
}
