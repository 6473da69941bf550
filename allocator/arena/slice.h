// Metadata of one slice (64 KiB of address space). All slices of an arena have theirs in one table, apart
// from the memory itself. This is the part that the arena layer owns; page/page.h extends it.
//
// A *span* is a run of slices. Its first and its last slice carry the same `kind` and `slices` (boundary
// tags), so that the neighbours of a span are found without a search; what stands in between is stale, or zero where the
// memory of the table was given back.
//
//                 take()                       give()
//   kFree  ───────────────────▶  kUsed … (kPage, kLarge: set by the layers above)  ──────▶  kFree
//     │  ▲
//     ▼  │ purge_step()
//   kPurging   out of every list while the OS call runs, so nobody allocates it
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "base/units.h"

namespace ebb {

enum class SliceKind : uint8_t {
  kNone = 0,      // never used, or the inside of something
  kFree,          // first or last slice of a free span
  kPurging,       // a free run whose memory is just going back to the OS
  kUsed,          // first or last slice of a span in use, not yet told apart
  kUsedTail,      // last slice of a span in use
  kPage,          // first slice of a page of equal blocks
  kPageInterior,  // a further slice of such a page; `back` leads to the first
  kLarge,         // first slice of a span that is one block
  kArena,         // first slice of a span that is an arena of its own (arena/adopted.h)
  kMeta,          // memory of the allocator's own structures
};

struct Slice {
  char* start;  // the slice's memory
  // Written by whoever holds the span, and read under the arena's lock by whoever looks whether a neighbour is free:
  // only the arena makes a span kFree, so any other value serves that reader alike.
  Relaxed<SliceKind> kind;
  uint8_t list;       // free spans: which of the arena's lists beside the bins, if any
  uint16_t arena_id;  // index in the table of arenas
  uint32_t slices;    // length of the span, on its first and last slice
  union {
    uint32_t back;  // kPageInterior: distance to the first slice
    uint32_t bin;   // free spans: where the arena's bins have it
  };
  uint32_t dirty;  // free spans: number of slices whose memory is not known to be zero. Spans in use: 0 when the
                   // ages of all their slices are
  // Free spans: the bin's list. Spans in use: lists of the layer above.
  Slice* next;
  Slice* prev;
  // Free spans: that list. Spans in use: lists of the layer above.
  Slice* ring_next;
  Slice* ring_prev;
  // Blocks freed by threads that do not own the page (page/remote.h).
  std::atomic<uint64_t> remote;
};
static_assert(sizeof(Slice) == kCacheLine, "the arena's part of the metadata is one cache line");

// The entry of a slice in its table: entries are kPageStride apart, sizeof(Slice) is only their first half.
inline Slice* slice_at(char* table, size_t index) { return reinterpret_cast<Slice*>(table + index * kPageStride); }
inline Slice* slice_after(Slice* slice, size_t count) {
  return reinterpret_cast<Slice*>(reinterpret_cast<char*>(slice) + count * kPageStride);
}
inline uint32_t slices_between(const Slice* first, const Slice* behind) {
  return static_cast<uint32_t>(
      static_cast<size_t>(reinterpret_cast<const char*>(behind) - reinterpret_cast<const char*>(first)) / kPageStride);
}
inline Slice* slice_before(Slice* slice, size_t count) {
  return reinterpret_cast<Slice*>(reinterpret_cast<char*>(slice) - count * kPageStride);
}

}  // namespace ebb
