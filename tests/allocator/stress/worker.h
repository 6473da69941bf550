// One thread of the stress program, with the blocks it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace ebb::test {

// A live block and what it holds: each byte is a function of `seed` and its index.
struct Held {
  unsigned char* p = nullptr;
  size_t size = 0;
  size_t alignment = 16;
  uint32_t seed = 0;
};

// Where threads leave blocks for others to check and free. Thread-safe.
class Exchange {
 public:
  // Swaps `block` with what another thread left in the slot; either may be empty.
  Held swap(size_t slot, const Held& block);
  // Everything that is left.
  std::vector<Held> drain();

 private:
  static constexpr size_t kSlots = 256;
  std::mutex mutex_;
  Held slots_[kSlots];
};

struct Limits {
  size_t live_bytes = size_t{48} << 20;    // what a worker holds at most
  size_t huge_bytes = size_t{24} << 20;    // the largest request
};

class Worker {
 public:
  Worker(unsigned seed, Exchange& exchange, const Limits& limits) : random_(seed), exchange_(exchange), limits_(limits) {}

  // Does one operation. False when something was wrong: error() says what.
  bool step();
  // Checks and frees everything that it holds.
  bool finish();
  const std::string& error() const { return error_; }
  uint64_t operations() const { return operations_; }

  bool check_and_free(Held& block);

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }
  size_t any_size();
  bool allocate();
  bool reallocate(Held& block);
  bool hand_over(size_t index);
  void forget(size_t index);
  bool fail(const std::string& what, const Held& block);
  bool check_new(const Held& block, bool zero);
  void fill(Held& block);
  bool is_intact(const Held& block, size_t size) const;

  std::mt19937_64 random_;
  Exchange& exchange_;
  Limits limits_;
  std::vector<Held> held_;
  size_t held_bytes_ = 0;
  uint64_t operations_ = 0;
  std::string error_;
};

}  // namespace ebb::test
