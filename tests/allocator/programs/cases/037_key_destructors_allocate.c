// 37: Destructors of thread-specific keys made before and after the allocator's own allocate, reallocate
// and free blocks of this and of other threads when the thread's heap may already be gone.
#include "case.h"

enum { kThreads = 3000 };

static pthread_key_t first_key, last_key;
static _Atomic(unsigned char*) handed_over;

static void destroy(void* block) {
  unsigned char* p = (unsigned char*)block;
  check_pattern(p, 100);
  unsigned char* grown = (unsigned char*)realloc(p, 5000);
  EXPECT(grown, "no memory in a destructor");
  for (int i = 0; i < 100; ++i) EXPECT(grown[i] == grown[0], "realloc in a destructor lost byte %d", i);
  unsigned char* fresh = (unsigned char*)malloc(300);
  EXPECT(fresh, "no memory in a destructor");
  fill_pattern(fresh, 300);
  unsigned char* other = __atomic_exchange_n((unsigned char**)&handed_over, fresh, __ATOMIC_ACQ_REL);
  if (other) {
    check_pattern(other, 300);
    free(other);
  }
  free(grown);
}

static void* work(void* unused) {
  (void)unused;
  pthread_key_t keys[] = {first_key, last_key};
  for (int i = 0; i < 2; ++i) {
    void* p = malloc(100);
    fill_pattern(p, 100);
    pthread_setspecific(keys[i], p);
  }
  free(opaque(malloc(40000)));
  return NULL;
}

// Runs before the first allocation of the program, so that this key is older than the allocator's, if
// it makes one on first use.
__attribute__((constructor)) static void make_first_key(void) { pthread_key_create(&first_key, destroy); }

int main(void) {
  arm_watchdog(60);
  free(opaque(malloc(1)));
  EXPECT(pthread_key_create(&last_key, destroy) == 0, "no key");
  for (int i = 0; i < kThreads; i += 4) {
    pthread_t threads[4];
    for (int t = 0; t < 4; ++t) EXPECT(pthread_create(&threads[t], NULL, work, NULL) == 0, "no thread");
    for (int t = 0; t < 4; ++t) pthread_join(threads[t], NULL);
  }
  free(handed_over);
  return 0;
}
