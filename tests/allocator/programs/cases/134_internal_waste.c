// 134: A payload just above a power of two does not cost the next one: at every size from 128 bytes to
// 64 MiB at most an eighth of the request is wasted, and RSS shows no more.
#include "case.h"

static void check_waste(size_t request) {
  void* p = malloc(request);
  EXPECT(p, "no %zu bytes", request);
  size_t waste = malloc_usable_size(p) - request;
  EXPECT(waste <= request / 8 + 16, "a request of %zu bytes wastes %zu", request, waste);
  free(p);
}

int main(void) {
  for (size_t power = 128; power <= 64 * MIB; power *= 2)
    for (size_t step = 0; step < 16; ++step) {
      check_waste(power + power / 16 * step);
      check_waste(power + power / 16 * step + 1);
      check_waste(power + power / 16 * step + 32);
    }
  enum { kBlocks = 2000 };
  const size_t payload = 32 * KIB + 32;
  static char* blocks[kBlocks];
  size_t before = resident_bytes();
  for (int i = 0; i < kBlocks; ++i) memset(blocks[i] = (char*)malloc(payload), 1, payload);
  size_t cost = resident_bytes() - before;
  // Each payload touches nine pages of 4 KiB; an eighth of waste by the class is within that.
  EXPECT(cost <= kBlocks * payload * 120 / 100, "32 KiB + 32 bytes cost %zu bytes each", cost / kBlocks);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  return 0;
}
