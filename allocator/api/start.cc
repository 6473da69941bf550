// What happens when the library is loaded: nothing. A program that never allocates pays for no more than mapping it;
// the first allocation makes the allocator ready (heap/process.h).
//
// Unless there are threads already, because the program loaded the library by dlopen: one of them could fork while
// another is in its first allocation, and the fork handlers have to be there before any lock is taken.
#include "heap/process.h"
#include "os/os.h"

namespace {

__attribute__((constructor(101))) void on_load() {
  if (!ebb::os::is_single_threaded()) ebb::process_start();
}

}  // namespace
