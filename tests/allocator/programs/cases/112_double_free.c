// 112: A block freed twice, at once or with frees between, is reported and ends the program in the
// checked build. Argument: the block's size.
#include "case.h"

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: double_free SIZE");
  size_t size = (size_t)atol(argv[1]);
  void* other = malloc(size);
  void* block = malloc(size);
  free(block);
  free(other);
  free(opaque(block));
  for (int i = 0; i < 1000; ++i) memset(opaque(malloc(size)), 1, size);
  return 0;
}
