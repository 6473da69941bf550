// Watching the resident memory until it rests; see settle.h.
#include "common/settle.h"

#include "common/clock.h"
#include "common/resident.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kLookEveryMs = 20;
constexpr std::uint64_t kMostMs = 10'000;

std::uint64_t distance(std::uint64_t one, std::uint64_t other) { return one > other ? one - other : other - one; }

}  // namespace

bool SteadyWatch::see(std::uint64_t bytes) {
  agreed_ = any_ && distance(bytes, last_bytes_) < kBytes ? agreed_ + 1 : 0;
  any_ = true;
  last_bytes_ = bytes;
  return agreed_ >= kLooks;
}

void settle(std::uint64_t least_ms) {
  if (least_ms == 0) return;
  const std::uint64_t begin_ns = now_ns();
  const std::uint64_t end_ns = begin_ns + kMostMs * kNanosecondsPerMillisecond;
  wait_until_ns(begin_ns + least_ms * kNanosecondsPerMillisecond);
  SteadyWatch watch;
  while (!watch.see(resident_bytes()) && now_ns() < end_ns) {
    wait_until_ns(now_ns() + kLookEveryMs * kNanosecondsPerMillisecond);
  }
}

}  // namespace tidemark
