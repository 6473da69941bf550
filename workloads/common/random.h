// Pseudo-random numbers: the same sequence on every machine, for every allocator.
//
// Called by every workload. One generator belongs to one thread.
// Sources: SplitMix64 is Steele, Lea and Flood's generator (OOPSLA 2014); the shifts 13, 7, 17 of the
// 64-bit xorshift are Marsaglia's (2003). Both are fast, small, and good enough to choose sizes and
// slots; neither is for secrets.
#pragma once

#include <cstdint>

namespace tidemark {

// Spreads neighbouring numbers over all 64 bits: a bijection, so different inputs stay different.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

class Random {
 public:
  // Any seed is fine; `stream` separates the threads of one workload.
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mix(seed ^ mix(stream)) | 1) {}  // xorshift must not start at zero

  constexpr std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  // Uniform in [0, bound), bound up to 2^32. By multiplication: a division would cost more than many
  // a malloc that the loop around it measures.
  constexpr std::uint64_t below(std::uint64_t bound) { return scale(next(), bound); }

  // Uniform in [low, high], both included, at most 2^32 apart.
  constexpr std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }

  // Maps the low 32 bits of `random` to [0, bound), so that one number can serve two choices.
  static constexpr std::uint64_t scale(std::uint64_t random, std::uint64_t bound) {
    return ((random & 0xffffffffu) * bound) >> 32;
  }

 private:
  std::uint64_t state_;
};

}  // namespace tidemark
