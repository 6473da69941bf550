// 128: A large calloc does not write memory that the system has zeroed, fresh or reused.
#include "case.h"

int main(void) {
  const size_t size = GIB;
  size_t before = resident_bytes();
  char* p = (char*)calloc(1, size);
  EXPECT(p, "no memory");
  EXPECT(p[size / 2] == 0, "not zero");
  EXPECT(resident_bytes() < before + 4 * MIB, "a fresh calloc makes %zu MiB resident", resident_bytes() / MIB);
  memset(p, 0x77, 128 * MIB);
  free(p);
  p = (char*)calloc(1, size);
  EXPECT(p, "no memory");
  for (size_t at = 0; at < 128 * MIB; at += 4096 * 512) EXPECT(p[at] == 0, "reused byte %zu is %d", at, p[at]);
  EXPECT(resident_bytes() < before + 16 * MIB, "a reused calloc makes %zu MiB resident", resident_bytes() / MIB);
  free(p);
  return 0;
}
