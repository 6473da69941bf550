// Finding more blocks of a class for a thread heap whose list is empty.
#pragma once

#include <cstddef>

#include "heap/thread_heap.h"

namespace ebb {

// A page whose returned blocks come in batches shorter than this is carved further although it has some: a
// longer list means fewer visits to the slow path, at the price of memory. 4 KiB a class, or 32 blocks of the
// small ones: four times as much saves half an instruction a pair in churn and costs 15 % of its memory
// (docs/decisions/001-layout-and-fast-paths.md).
constexpr uint32_t kBatchBytes = 4 * KiB;
constexpr uint32_t kBatchBlocks = 32;

inline bool is_short_batch(const Page* page) {
  uint32_t blocks = static_cast<uint32_t>(page->carved - page->hole_blocks) - page->countdown;
  return blocks < kBatchBlocks && blocks * page->block_bytes < kBatchBytes && page->carved != page->capacity;
}

// Fills heap->free[cls]. The caller is the thread and holds its gate; the list is empty. `fresh` (may be
// null) is set to whether the first block was never used and reads as zero but for its link. False: out of
// memory.
bool refill(ThreadHeap* heap, size_t cls, bool* fresh);

// The same up to the last step: the list of the page returned, heap->active[cls], is still to be taken. Null: out of
// memory.
EBB_COLD Page* refill_page(ThreadHeap* heap, size_t cls, bool* fresh);

}  // namespace ebb
