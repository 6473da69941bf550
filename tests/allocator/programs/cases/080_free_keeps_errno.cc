// 80: No form of free or delete changes errno, also when the system calls it makes fail: because all
// memory is locked, or because a filter refuses madvise. Argument: plain, locked or filtered.
#include "deny_syscall.h"
#include <new>

namespace {

enum Form { kFree, kReallocated, kDelete, kSized, kArray, kAligned, kForms };

void release(void* p, size_t size, Form form) {
  switch (form) {
    case kFree:
    case kReallocated: free(p); return;
    case kDelete: operator delete(p); return;
    case kSized: operator delete(p, size); return;
    case kArray: operator delete[](p); return;
    default: operator delete(p, std::align_val_t(64)); return;
  }
}

void* obtain(size_t size, Form form) {
  switch (form) {
    case kFree: return malloc(size);
    case kReallocated: return realloc(opaque(malloc(size / 3 + 1)), size);
    case kArray: return operator new[](size);
    case kAligned: return operator new(size, std::align_val_t(64));
    default: return operator new(size);
  }
}

}  // namespace

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: free_keeps_errno plain|locked|filtered");
  arm_watchdog(60);
  free(malloc(1));
  if (strcmp(argv[1], "locked") == 0)
    EXPECT(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0, "mlockall: errno %d", errno);
  if (strcmp(argv[1], "filtered") == 0) deny_syscall(SYS_madvise, EPERM);
  for (int round = 0; round < 10; ++round)
    for (int form = 0; form < kForms; ++form)
      for (size_t size = 8; size <= 200 * MIB; size = size * 5 + 3) {
        char* p = static_cast<char*>(obtain(size, static_cast<Form>(form)));
        EXPECT(p, "no %zu bytes", size);
        p[0] = p[size - 1] = 1;
        errno = EXDEV;
        release(p, size, static_cast<Form>(form));
        EXPECT(errno == EXDEV, "errno is %d after form %d of free on %zu bytes", errno, form, size);
      }
  return 0;
}
