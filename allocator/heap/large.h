// Large blocks: requests above kLargestBlock get a span of slices of their own, from the arenas. Any thread may
// allocate, resize or free any of them; no thread owns one.
#pragma once

#include <cstddef>

#include "base/bits.h"
#include "heap/heap.h"
#include "page/page.h"

namespace ebb {

// `zero` (may be null): set to whether the memory is known to be zero. `alignment`: a power of two.
void* large_allocate(Heap* heap, size_t size, size_t alignment, bool* zero);

// The same with `room` bytes of address space behind the block, at most `size`, for its growth. Null: try without, as
// for a first-class heap, whose arena may be small.
void* large_allocate_with_room(Heap* heap, size_t size, size_t room);

// A block with a span of its own of a size that pages would serve: `usable` is a class's. Aligned to a slice.
void* large_allocate_small(Heap* heap, size_t usable, bool* zero);

// `page` is the metadata of the slice that holds p and has kind kLarge.
void large_release(Page* page, void* p);

// Frees a block that the caller has taken out of its heap.
void large_free_left(Page* page);

// Resizes where it stands or by moving OS pages; null when only a copy would do. p is the block of `page`.
void* large_resize(Page* page, size_t size);

// Zeroes the first `size` bytes of a block that was just made of memory not known to be zero: by giving memory back, or
// by hand where it was used.
void large_clear(void* p, size_t size);

// What usable_bytes says of a large block of `size`: 4 KiB whatever the OS page, at most 1/16 of a large request.
inline size_t large_usable(size_t size) { return align_up(size, 4 * KiB); }

}  // namespace ebb
