// What sized and aligned frees are checked against, in debug and secure builds: what the caller says fits the block.
// Any thread; the block is live, or null.
#pragma once

#include <cstddef>

#include "base/compiler.h"
#include "base/units.h"
#include "base/variant.h"
#include "heap/alloc.h"
#include "heap/misuse.h"
#include "page/size_class.h"

namespace ebb {

// What is no live block, the free itself reports.
EBB_INLINE bool has_checked_size(const void* p) { return kReportsMisuse && p != nullptr && page_of_block(p) != nullptr; }

// Not more than the block has, and not less than half of it: realloc leaves no block with less than that in use. A
// borrowed block may be of any size.
EBB_INLINE void check_size(void* p, size_t size) {
  if (!has_checked_size(p)) return;
  size_t usable = usable_bytes(p);
  bool too_small = size < usable / 2 && usable > kBlockAlign && usable != class_bytes(kLendingClass);
  if (good_bytes(size) > usable || too_small) report_wrong_size(p, size, usable);
}

// The size of an aligned block may be far below what it has.
EBB_INLINE void check_aligned(void* p, size_t size, size_t alignment) {
  if (!has_checked_size(p)) return;
  if (alignment == 0 || reinterpret_cast<uintptr_t>(p) % alignment != 0) report_wrong_alignment(p, alignment);
  if (good_bytes(size) > usable_bytes(p)) report_wrong_size(p, size, usable_bytes(p));
}

}  // namespace ebb
