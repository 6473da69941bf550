// 61: The allocator is preloaded in the base namespace and linked into a library that dlmopen loads into
// a second one, with a second libc; both heaps must be whole, also at exit.
#include "case.h"
#include <dlfcn.h>

static volatile int stop;

static void* churn(void* unused) {
  (void)unused;
  while (!stop) {
    char* p = (char*)malloc(333);
    fill_pattern(p, 333);
    check_pattern(p, 333);
    free(p);
  }
  return NULL;
}

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: dlmopen LIBRARY");
  arm_watchdog(30);
  pthread_t thread;
  pthread_create(&thread, NULL, churn, NULL);
  void* library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
  EXPECT(library, "%s", dlerror());
  int (*use_threads)(void) = (int (*)(void))dlsym(library, "use_threads");
  EXPECT(use_threads, "%s", dlerror());
  for (int i = 0; i < 5; ++i) EXPECT(use_threads() == 0, "the namespace's threads failed");
  stop = 1;
  pthread_join(thread, NULL);
  return 0;
}
