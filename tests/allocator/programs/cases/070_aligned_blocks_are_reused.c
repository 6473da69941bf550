// 70: 2 MiB blocks aligned to 2 MiB, taken and freed over and over, use the same memory again; and many
// live ones cost no more than themselves.
#include "case.h"

int main(void) {
  arm_watchdog(60);
  enum { kDistinct = 64, kLive = 50 };
  uintptr_t seen[kDistinct];
  int distinct = 0;
  size_t mapped = 0;
  for (int round = 0; round < 3000; ++round) {
    char* p = (char*)memalign(2 * MIB, 2 * MIB);
    EXPECT(p && (uintptr_t)p % (2 * MIB) == 0, "not aligned: %p", (void*)p);
    p[0] = p[2 * MIB - 1] = 1;
    int known = 0;
    for (int i = 0; i < distinct; ++i) known |= seen[i] == (uintptr_t)p;
    if (!known) {
      EXPECT(distinct < kDistinct, "%d distinct addresses after %d rounds", distinct, round);
      seen[distinct++] = (uintptr_t)p;
    }
    free(p);
    if (round == 100) mapped = status_bytes("VmSize");
  }
  EXPECT(status_bytes("VmSize") <= mapped + 8 * MIB, "address space grows");
  size_t before = resident_bytes();
  static char* live[kLive];
  for (int i = 0; i < kLive; ++i) memset(live[i] = (char*)memalign(2 * MIB, 2 * MIB), 1, 2 * MIB);
  size_t cost = resident_bytes() - before;
  EXPECT(cost <= kLive * 2 * MIB * 102 / 100 + MIB, "%d blocks of 2 MiB cost %zu MiB", kLive, cost / MIB);
  for (int i = 0; i < kLive; ++i) free(live[i]);
  return 0;
}
