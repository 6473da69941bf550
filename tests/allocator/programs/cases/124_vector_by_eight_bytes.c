// 124: A block grown by 8 bytes at a time, up to 16 MiB, costs amortised time: copying each time would be
// 10^13 bytes. A limit of CPU seconds, far above what is needed, ends the quadratic case.
#include "case.h"

int main(void) {
  struct rlimit limit = {20, 20};
  setrlimit(RLIMIT_CPU, &limit);
  char* p = NULL;
  for (size_t size = 8; size <= 16 * MIB; size += 8) {
    p = (char*)realloc(p, size);
    EXPECT(p, "no memory at %zu bytes", size);
    memcpy(p + size - 8, &size, 8);
  }
  for (size_t size = 8; size <= 16 * MIB; size += 8) {
    size_t stored;
    memcpy(&stored, p + size - 8, 8);
    EXPECT(stored == size, "bytes at %zu were lost", size - 8);
  }
  free(p);
  return 0;
}
