// A checksum that does not depend on the order of its parts.
//
// Called by every workload; threads keep their own and the owner merges them. Order must not matter
// because the order in which threads meet blocks differs from run to run, while the set of blocks may
// not. Addresses never go in: they are the allocator's choice.
#pragma once

#include <cstdint>

#include "common/random.h"

namespace tidemark {

class Checksum {
 public:
  void add(std::uint64_t value) { sum_ += mix(value); }
  void merge(const Checksum& other) { sum_ += other.sum_; }
  std::uint64_t value() const { return mix(sum_); }

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace tidemark
