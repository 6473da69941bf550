// The sizes that the whole architecture rests on, and why they are what they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/variant.h"

namespace ebb {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;
constexpr size_t GiB = 1024 * MiB;

// Every block is aligned to this, whatever its size: alignof(max_align_t) on the supported targets, and
// compilers assume it of malloc.
constexpr size_t kBlockAlign = 16;

// A slice is the unit in which arenas hand out address space. 64 KiB: the largest OS page of the supported
// targets, so a slice can always be returned to the OS by itself; small enough that a heap with one block
// costs little, large enough that metadata (kPageStride a slice) is 0.2 %.
constexpr size_t kSliceShift = 16;
constexpr size_t kSliceBytes = size_t{1} << kSliceShift;

// Bytes of metadata a slice, two cache lines: one that the owner writes, one that other threads write. The secure build
// has a bit for each address where a block may begin besides (page/live_blocks.h).
constexpr size_t kCacheLine = 64;
constexpr size_t kPageStride = 2 * kCacheLine + (kSecure ? kSliceBytes / kBlockAlign / 8 : 0);

// No request above this is ever served (ISO C: PTRDIFF_MAX), so sums of a size, an alignment and a header
// cannot wrap.
constexpr size_t kMaxRequestBytes = static_cast<size_t>(PTRDIFF_MAX);

// A number of slices; never mixes with a number of bytes.
struct SliceCount {
  uint32_t value = 0;
  constexpr size_t bytes() const { return size_t{value} << kSliceShift; }
  static constexpr SliceCount from_bytes_up(size_t bytes) {
    return {static_cast<uint32_t>((bytes + kSliceBytes - 1) >> kSliceShift)};
  }
  friend constexpr bool operator==(SliceCount a, SliceCount b) { return a.value == b.value; }
};

}  // namespace ebb
