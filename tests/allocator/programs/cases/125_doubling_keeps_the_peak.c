// 125: A large block doubled by realloc grows in place or is remapped, so that the peak is near its final
// size and not the sum of old and new.
#include "case.h"

int main(void) {
  const size_t final = 256 * MIB;
  size_t before = status_bytes("VmHWM");
  for (int round = 0; round < 3; ++round) {
    char* p = NULL;
    size_t old_size = 0;
    for (size_t size = 4 * KIB; size <= final; size *= 2) {
      p = (char*)realloc(p, size);
      EXPECT(p, "no memory");
      memset(p + old_size, (int)(size >> 12), size - old_size);
      if (old_size) EXPECT(p[old_size - 1] == (char)(old_size >> 12), "realloc lost the last byte of %zu", old_size);
      old_size = size;
    }
    size_t peak = status_bytes("VmHWM") - before;
    EXPECT(peak < final + final / 16, "doubling to 256 MiB peaks at %zu MiB", peak / MIB);
    free(p);
    malloc_trim(0);
  }
  return 0;
}
