// Looking at a heap: what it holds, and each of its blocks.
#pragma once

#include <cstddef>

#include "heap/heap.h"

namespace ebb {

struct HeapUse {
  size_t live_bytes = 0, live_blocks = 0;
  size_t span_bytes = 0;
  size_t page_count = 0, large_count = 0, thread_count = 0;
};

// Adds up the heap's pages and large blocks; any thread, at any time. Blocks in other threads' lists count as live.
HeapUse heap_use(Heap* heap);

struct HeapArea {
  const char* start;
  size_t bytes;
  size_t block_bytes;
  size_t live_blocks;
};

// Called with a null block for each area first, then for each live block in it; returns whether to go on.
using HeapVisitor = bool (*)(const HeapArea& area, void* block, void* argument);

// Visits the heap's areas. No other thread uses the heap or parks meanwhile, and the visitor neither allocates from it nor
// frees blocks of it. False when the visitor ended it.
bool heap_visit(Heap* heap, HeapVisitor visit, void* argument);

}  // namespace ebb
