// Call stacks of the calling thread, by the libc's backtrace(), which not every libc has.
//
// The libc loads the unwinder (libgcc_s) at the first call, which allocates and takes the dynamic linker's locks;
// later calls do neither.
#include <execinfo.h>
#include <sys/auxv.h>

#include "os/os.h"

#pragma weak backtrace

// Where this program or library lies; the linker defines them.
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

namespace ebb::os {

void prepare_call_stacks() {
  void* frame;
  call_stack(&frame, 1);
}

size_t call_stack(void** frames, size_t most) {
  if (backtrace == nullptr) return 0;
  int depth = backtrace(frames, static_cast<int>(most));
  return depth > 0 ? static_cast<size_t>(depth) : 0;
}

bool is_library_code(const void* address) {
  uintptr_t first = reinterpret_cast<uintptr_t>(__ehdr_start), end = reinterpret_cast<uintptr_t>(_end);
  uintptr_t entry = getauxval(AT_ENTRY);
  if (entry >= first && entry < end) return false;  // linked into the program: its code is beside ours
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  return at >= first && at < end;
}

}  // namespace ebb::os
