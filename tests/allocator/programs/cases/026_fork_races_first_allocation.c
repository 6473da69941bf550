// 26: A static constructor starts threads that allocate at once, and main forks before it has allocated
// anything; fork handlers registered too late leave a lock held in the child. Run many times over.
#include "case.h"

static volatile int stop;
static pthread_t threads[4];

static void* churn(void* unused) {
  (void)unused;
  while (!stop) free(opaque(malloc(100)));
  return NULL;
}

__attribute__((constructor)) static void start_threads(void) {
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, churn, NULL);
}

int main(void) {
  pid_t child = fork();
  if (child == 0) {
    arm_watchdog(10);
    for (size_t size = 1; size < MIB; size *= 3) {
      char* p = (char*)malloc(size);
      EXPECT(p, "no %zu bytes in the child", size);
      memset(p, 1, size);
      free(p);
    }
    _exit(0);
  }
  expect_child_succeeds(child);
  stop = 1;
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return 0;
}
