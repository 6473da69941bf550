#include "stats/counters.h"

namespace ebb {

constinit std::atomic<uint64_t> g_counters[static_cast<size_t>(Counter::kCount)] = {};

namespace {
constexpr CounterInfo kInfo[] = {
#define EBB_COUNTER(name, unit, doc) {#name, unit, doc},
#include "stats/counters.def"
#undef EBB_COUNTER
};
}  // namespace

const CounterInfo& counter_info(size_t index) { return kInfo[index]; }

}  // namespace ebb
