// Monotonic time. Called by workloads and the session, from any thread.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace tidemark {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::uint64_t kNanosecondsPerMillisecond = 1'000'000;

inline std::uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kNanosecondsPerSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

// Blocks until now_ns() has reached `deadline_ns`, whatever signals come.
inline void wait_until_ns(std::uint64_t deadline_ns) {
  timespec time;
  time.tv_sec = static_cast<time_t>(deadline_ns / kNanosecondsPerSecond);
  time.tv_nsec = static_cast<long>(deadline_ns % kNanosecondsPerSecond);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

}  // namespace tidemark
