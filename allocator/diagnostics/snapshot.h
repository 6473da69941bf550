// What the process holds at one moment, added up from the pages' own metadata when somebody asks: nothing is
// kept up to date on the fast paths for it.
//
// Any thread, nothing held. Other threads run meanwhile: each page is read as it is at that instant, so figures
// of a busy process are close rather than exact; those of a process at rest are exact but for the blocks in
// lists of threads other than the caller, which count as live. No figure is ever negative or wraps.
#pragma once

#include <cstddef>

#include "page/size_class.h"

namespace ebb {

struct ClassUse {
  size_t pages = 0;
  size_t live_blocks = 0;
  size_t free_blocks = 0;  // carved, and neither live nor in a hole
};

struct Snapshot {
  size_t live_bytes = 0;  // in blocks that the program holds, rounded up to their usable size
  size_t live_blocks = 0;
  size_t large_bytes = 0;  // the part of live_bytes in blocks with a span of their own
  size_t large_blocks = 0;
  size_t page_count = 0;
  size_t span_bytes = 0;      // address space of pages and large blocks
  size_t hole_bytes = 0;      // given back from inside pages
  size_t resident_bytes = 0;  // an estimate from above: large blocks count as touched
  size_t dirty_bytes = 0;     // free spans that were not purged yet
  size_t committed_bytes = 0;
  size_t reserved_bytes = 0;
  size_t metadata_bytes = 0;  // slice tables up to the last slice in use, and the allocator's own structures
  size_t thread_count = 0;
  ClassUse classes[kClassCount];
};

// Walks all arenas, each under its lock: about a microsecond for every ten pages.
void take_snapshot(Snapshot* snapshot);

}  // namespace ebb
