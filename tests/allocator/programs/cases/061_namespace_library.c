// Loaded by 061_dlmopen into a namespace of its own, with a libc and an allocator of its own: allocates in
// its constructor, in threads it starts, and in its destructor.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void* kept;

static void* work(void* unused) {
  (void)unused;
  for (int i = 0; i < 2000; ++i) {
    size_t size = (size_t)(i * 37 % 9000 + 1);
    char* p = malloc(size);
    if (!p) abort();
    memset(p, i, size);
    p = realloc(p, size * 2);
    if (!p || p[size - 1] != (char)i) abort();
    free(p);
  }
  return NULL;
}

__attribute__((constructor)) static void begin(void) { memset(kept = malloc(100000), 1, 100000); }
__attribute__((destructor)) static void end(void) { free(kept); }

int use_threads(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i)
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
  work(NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  return 0;
}
