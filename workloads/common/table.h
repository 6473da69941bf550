// Arrays for a workload's own bookkeeping, straight from mmap.
//
// Owns: all memory that is the workload's and not the allocator's. Made in set-up by one thread; the
// elements are the workload's to share. Every page is touched at once, so that the driver's part of the
// resident memory is a constant that each checkpoint reports as `driver_bytes`.
// Element types are trivial and begin as zero bytes.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <type_traits>

#include "common/exits.h"

namespace tidemark {

// Bytes that all living tables hold.
inline std::atomic<std::size_t> driver_bytes{0};

template <typename T>
class Table {
  static_assert(std::is_trivially_destructible_v<T>, "elements are never destroyed one by one");

 public:
  explicit Table(std::size_t count) : count_(count), bytes_(round_up(count * sizeof(T))) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) fail_broken_errno("cannot map the workload's own tables");
    items_ = static_cast<T*>(memory);
    driver_bytes.fetch_add(bytes_, std::memory_order_relaxed);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    munmap(items_, bytes_);
    driver_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
  }

  T& operator[](std::size_t index) { return items_[index]; }
  const T& operator[](std::size_t index) const { return items_[index]; }
  std::size_t size() const { return count_; }
  T* begin() { return items_; }
  T* end() { return items_ + count_; }
  std::span<const T> all() const { return {items_, count_}; }
  std::span<T> part(std::size_t first, std::size_t count) { return {items_ + first, count}; }

 private:
  static std::size_t round_up(std::size_t bytes) {
    constexpr std::size_t kStep = 4096;
    return bytes == 0 ? kStep : (bytes + kStep - 1) / kStep * kStep;
  }

  T* items_;
  std::size_t count_;
  std::size_t bytes_;
};

}  // namespace tidemark
