// The process's own resident memory, and the least that a set of live blocks can occupy.
//
// Called between measured parts, by any one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/blocks.h"

namespace tidemark {

std::size_t page_bytes();

// Rss of /proc/self/smaps_rollup, which is exact; the cheaper statm is not since Linux 6.2.
std::uint64_t resident_bytes();

// Private_Dirty of /proc/self/smaps_rollup: pages that no other process shares and that were written.
std::uint64_t private_dirty_bytes();

// Page faults of the process so far that needed no reading from disk.
std::uint64_t minor_faults();

struct Extent {
  const void* begin;
  std::size_t bytes;
};

// Bytes of the OS pages that hold at least one live byte: no allocator that cannot move blocks can keep
// less. Takes and returns eight bytes of mapped memory for each page touched.
std::uint64_t floor_bytes(std::span<const Extent> live);

// The same for the blocks that have an address.
std::uint64_t floor_bytes(std::span<const Block> blocks);

}  // namespace tidemark
