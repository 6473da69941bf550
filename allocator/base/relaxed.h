// A value that one writes and others may read at any time, where any order will do.
#pragma once

#include <atomic>

namespace ebb {

template <class T>
class Relaxed {
 public:
  constexpr Relaxed() = default;
  operator T() const { return value_.load(std::memory_order_relaxed); }
  Relaxed& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }

 private:
  std::atomic<T> value_{};
};

}  // namespace ebb
