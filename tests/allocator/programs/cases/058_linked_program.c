// 58: Linked with the allocator and made setuid, this program must ignore options of whoever runs it.
#include "case.h"

int main(void) {
  for (size_t size = 16; size < 4 * MIB; size *= 2) free(opaque(malloc(size)));
  EXPECT(geteuid() == 0 || getuid() == geteuid(), "not run as meant");
  return 0;
}
