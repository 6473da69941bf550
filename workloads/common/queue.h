// A bounded queue for any number of producers and consumers, without locks.
//
// Used by workloads that hand blocks from thread to thread. Each cell carries a turn number:
//
//   turn == position             empty, the producer that claims `position` may write
//   turn == position + 1         full, the consumer that claims `position` may read
//   turn == position + capacity  empty again, for the next lap
//
// A claim is one compare-and-swap on the head or tail position. The release store of a cell's turn
// pairs with the acquire load of whoever looks at that cell next. (The scheme is Dmitry Vyukov's
// bounded MPMC queue.)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/table.h"

namespace tidemark {

template <typename T>
class Queue {
 public:
  // `capacity` is a power of two.
  explicit Queue(std::size_t capacity) : cells_(capacity), mask_(capacity - 1) {
    for (std::size_t index = 0; index < capacity; ++index) {
      cells_[index].turn.store(index, std::memory_order_relaxed);
    }
  }

  // False when full.
  bool try_push(const T& value) {
    std::uint64_t position = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position) {
        if (!tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) continue;
        cell.value = value;
        cell.turn.store(position + 1, std::memory_order_release);
        return true;
      }
      if (turn < position) return false;
      position = tail_.load(std::memory_order_relaxed);
    }
  }

  // False when empty.
  bool try_pop(T& value) {
    std::uint64_t position = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position + 1) {
        if (!head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) continue;
        value = cell.value;
        cell.turn.store(position + mask_ + 1, std::memory_order_release);
        return true;
      }
      if (turn < position + 1) return false;
      position = head_.load(std::memory_order_relaxed);
    }
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> turn;
    T value;
  };

  Table<Cell> cells_;
  const std::uint64_t mask_;
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace tidemark
