// What a test may expect of the size of a block.
#pragma once

#include <ebb/ebb.h>

#include <cstddef>

namespace ebb_test {

// As ebb_good_size says; or 128 bytes, which a thread's first blocks below that may have (page/size_class.h).
inline bool is_usable_as_promised(const void* p, size_t size) {
  constexpr size_t kLent = 128;
  size_t usable = ebb_usable_size(p), good = ebb_good_size(size);
  return usable == good || (good < kLent && usable == kLent);
}

}  // namespace ebb_test
