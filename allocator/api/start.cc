// What happens when the library is loaded: nothing. A program that never allocates pays for no more than mapping it;
// the first allocation makes the allocator ready (heap/process.h).
//
// Unless there are threads already, because the program loaded the library by dlopen: one of them could fork while
// another is in its first allocation, and the fork handlers have to be there before any lock is taken. And unless the
// environment asks for a heap profile, which is then written when the process exits: here the unwinder may be loaded,
// inside malloc it may not.
#include "diagnostics/profile.h"
#include "heap/process.h"
#include "os/os.h"

extern "C" char** __environ;  // the libc's own name of environ

namespace {

// Whether there is a variable of the profiler's. Letter by letter, without a call: this file lies apart from all else.
bool environment_names_profile() {
  if (__environ == nullptr) return false;
  for (char** entry = __environ; *entry != nullptr; ++entry) {
    const char* name = *entry;
    if (name[0] == 'E' && name[1] == 'B' && name[2] == 'B' && name[3] == '_' && name[4] == 'P' && name[5] == 'R') {
      return true;
    }
  }
  return false;
}

__attribute__((constructor(101))) void on_load() {
  if (!ebb::os::is_single_threaded()) ebb::process_start();
  if (environment_names_profile()) ebb::profile_start_from_options();
}

__attribute__((destructor(101))) void on_end() {
  if (ebb::g_profile_at_exit) ebb::profile_write_at_exit();
}

}  // namespace
