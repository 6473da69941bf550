// An arena of a test's own: address space with a table and ages in front, as the cage lays it out.
#pragma once

#include <cstring>
#include <memory>

#include "arena/arena.h"
#include "base/bits.h"
#include "os/os.h"

namespace ebb::test {

// What the memory of the range is when the arena gets it.
enum class Begins { kReserved, kZeroed, kUsedBefore };

class ArenaRange {
 public:
  // `slices` usable ones; the first is `skew` slices behind a multiple of 1024 slices (64 MiB).
  explicit ArenaRange(uint32_t slices, uint32_t skew = 0, Begins begins = Begins::kReserved, bool pinned = false) {
    uint32_t header = header_slices(slices) + skew;
    low_ = header;
    high_ = header + slices;
    bytes_ = size_t{high_ + 1} << kSliceShift;
    start_ = static_cast<char*>(os::reserve(bytes_, 1024 * kSliceBytes));
    if (start_ == nullptr) return;
    if (begins != Begins::kReserved) os::commit(start_, bytes_);
    if (begins == Begins::kUsedBefore) {
      for (uint32_t i = low_; i < high_; ++i) memset(start_ + (size_t{i} << kSliceShift), 0x5A, 64);
    }
    Arena::Range range{start_, start_, ages(), low_, high_, begins != Begins::kReserved, begins != Begins::kUsedBefore, pinned};
    arena_ = std::make_unique<Arena>();
    arena_->initialise(0, range);
  }
  ~ArenaRange() {
    if (start_ != nullptr) os::release(start_, bytes_);
  }
  ArenaRange(const ArenaRange&) = delete;
  ArenaRange& operator=(const ArenaRange&) = delete;

  Arena& arena() { return *arena_; }
  char* memory(uint32_t index) const { return start_ + (size_t{index} << kSliceShift); }
  uint32_t index_of(const Slice* span) const {
    return static_cast<uint32_t>(static_cast<size_t>(reinterpret_cast<const char*>(span) - start_) / kPageStride);
  }
  Slice* slice(uint32_t index) const { return slice_at(start_, index); }
  uint32_t low() const { return low_; }
  uint32_t high() const { return high_; }

 private:
  // The table, the ages, and a page between, in whole slices.
  static uint32_t header_slices(uint32_t slices) {
    size_t most = 2 * size_t{slices} + 2048;
    return static_cast<uint32_t>((align_up(most * kPageStride, kSliceBytes) + align_up(most, kSliceBytes)) >> kSliceShift) + 1;
  }
  uint8_t* ages() const {
    return reinterpret_cast<uint8_t*>(start_ + align_up((size_t{high_} + 1) * kPageStride, kSliceBytes));
  }

  char* start_ = nullptr;
  size_t bytes_ = 0;
  uint32_t low_ = 0, high_ = 0;
  std::unique_ptr<Arena> arena_;
};

}  // namespace ebb::test
