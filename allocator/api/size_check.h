// What sized frees are checked against, in debug builds: the size that the caller says fits the block.
// Any thread; the block is live.
#pragma once

#include <cstddef>

#include "base/compiler.h"
#include "heap/alloc.h"
#include "heap/misuse.h"

namespace ebb {

EBB_INLINE void check_size([[maybe_unused]] void* p, [[maybe_unused]] size_t size) {
#if defined(EBB_DEBUG)
  if (p != nullptr && good_bytes(size) > usable_bytes(p)) report_wrong_size(p, size, usable_bytes(p));
#endif
}

}  // namespace ebb
