// 77: realloc from 1.5 to 2.2 to 4.3 GiB and back keeps contents and sizes: no int in the way.
#include "case.h"

static const size_t kStep = 1 << 20;  // One byte a MiB: the whole would not fit a small machine.

static char mark(size_t at) { return (char)(at / kStep % 251 + 1); }

int main(void) {
  arm_watchdog(60);
  const size_t sizes[] = {GIB * 3 / 2, GIB * 22 / 10, GIB * 43 / 10, GIB * 22 / 10, GIB / 2};
  char* p = NULL;
  size_t old_size = 0;
  for (int i = 0; i < 5; ++i) {
    p = (char*)realloc(p, sizes[i]);
    EXPECT(p, "no %zu MiB", sizes[i] / MIB);
    EXPECT(malloc_usable_size(p) >= sizes[i], "%zu usable bytes of %zu", malloc_usable_size(p), sizes[i]);
    for (size_t at = old_size; at < sizes[i]; at += kStep) p[at] = mark(at);
    old_size = (sizes[i] + kStep - 1) / kStep * kStep;
    p[sizes[i] - 1] = (sizes[i] - 1) % kStep == 0 ? mark(sizes[i] - 1) : 99;
    for (size_t at = 0; at < sizes[i]; at += kStep) EXPECT(p[at] == mark(at), "byte %zu is wrong at %zu", at, sizes[i]);
  }
  free(p);
  return 0;
}
