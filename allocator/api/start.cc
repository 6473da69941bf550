// What happens when the library is loaded: handlers are registered, nothing is allocated and no thread starts.
#include "heap/process.h"
#include "scavenger/scavenger.h"

namespace {

// Before any constructor of the program that could fork. The allocator itself is ready whenever it is first
// used, also before this.
__attribute__((constructor(101))) void on_load() {
  if (!ebb::process_start()) return;
  ebb::process_watch_fork();
  ebb::scavenger_connect();
}

}  // namespace
