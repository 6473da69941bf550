// 82: Programs use a block up to its usable size; realloc keeps all of these bytes, not only those asked for.
#include "case.h"

int main(void) {
  for (size_t size = 1; size <= 300000; size += size / 16 + 1)
    for (size_t factor = 2; factor <= 10; factor += 8) {
      unsigned char* p = (unsigned char*)malloc(size);
      size_t usable = malloc_usable_size(p);
      for (size_t i = 0; i < usable; ++i) p[i] = (unsigned char)(i * 7 + size);
      p = (unsigned char*)realloc(p, usable * factor);
      EXPECT(p, "no memory");
      for (size_t i = 0; i < usable; ++i)
        EXPECT(p[i] == (unsigned char)(i * 7 + size), "realloc from %zu loses byte %zu of %zu usable", size, i, usable);
      free(p);
    }
  return 0;
}
