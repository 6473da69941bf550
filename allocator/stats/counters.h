// Event counters of the process. Incremented on slow paths only, with relaxed atomics; safe everywhere.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ebb {

enum class Counter : uint8_t {
#define EBB_COUNTER(name, unit, doc) k_##name,
#include "stats/counters.def"
#undef EBB_COUNTER
  kCount,
};

extern std::atomic<uint64_t> g_counters[static_cast<size_t>(Counter::kCount)];

inline void count(Counter which, uint64_t amount = 1) {
  g_counters[static_cast<size_t>(which)].fetch_add(amount, std::memory_order_relaxed);
}

inline uint64_t counted(Counter which) {
  return g_counters[static_cast<size_t>(which)].load(std::memory_order_relaxed);
}

struct CounterInfo {
  const char* name;
  const char* unit;
  const char* doc;
};
const CounterInfo& counter_info(size_t index);

}  // namespace ebb
