// 26: Forks again and again beside threads that allocate, with fork handlers that allocate (026_early_handlers.c,
// linked in): neither parent nor child may wait for a lock that the fork itself holds.
#include "case.h"

static volatile int stop;

static void* churn(void* unused) {
  (void)unused;
  void* slots[32] = {0};
  for (uint64_t state = 88172645463325252u; !stop;) {
    size_t slot = next_random(&state) % 32;
    free(slots[slot]);
    slots[slot] = malloc(16 + next_random(&state) % (64 * KIB));
    EXPECT(slots[slot], "no memory for a churning thread");
  }
  for (int i = 0; i < 32; ++i) free(slots[i]);
  return NULL;
}

int main(int count, char** arguments) {
  arm_watchdog(50);
  int thread_count = count > 1 ? atoi(arguments[1]) : 0;
  pthread_t threads[4];
  for (int i = 0; i < thread_count; ++i) pthread_create(&threads[i], NULL, churn, NULL);
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      arm_watchdog(10);
      free(opaque(malloc(100)));
      pid_t grandchild = fork();
      if (grandchild == 0) _exit(0);
      expect_child_succeeds(grandchild);
      _exit(0);
    }
    expect_child_succeeds(child);
  }
  stop = 1;
  for (int i = 0; i < thread_count; ++i) pthread_join(threads[i], NULL);
  return 0;
}
