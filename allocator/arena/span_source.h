// Where spans come from: everybody's arenas, those of one group, or a single one. A value; no state of its own.
#pragma once

#include "arena/slice.h"
#include "base/units.h"

namespace ebb {

class Arena;

// An arena serves one group: null is everybody (take_span); an exclusive arena is a group of its own; a
// sub-process is one.
using ArenaGroup = const void*;

struct SpanSource {
  ArenaGroup group = nullptr;
  Arena* only = nullptr;  // not null: this arena alone

  bool is_everybodys() const { return group == nullptr && only == nullptr; }
};

inline constexpr SpanSource kEverybodysSource{};

// Takes a span as take_span (arena/cage.h) does, from `source`.
Slice* take_span_from(const SpanSource& source, SliceCount slices, size_t alignment, bool* zero);

}  // namespace ebb
