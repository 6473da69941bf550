// Arithmetic on sizes and bit words. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

constexpr bool is_power_of_two(size_t x) { return x != 0 && (x & (x - 1)) == 0; }

// Rounds down / up to a multiple of `alignment`, a power of two. `align_up` wraps at the end of the
// address space: callers bound their sizes first (kMaxRequestBytes).
constexpr size_t align_down(size_t x, size_t alignment) { return x & ~(alignment - 1); }
constexpr size_t align_up(size_t x, size_t alignment) { return align_down(x + alignment - 1, alignment); }

constexpr size_t div_up(size_t x, size_t divisor) { return (x + divisor - 1) / divisor; }

// Index of the highest set bit; x must not be 0.
constexpr unsigned floor_log2(uint64_t x) { return 63u - static_cast<unsigned>(__builtin_clzll(x)); }
// Index of the lowest set bit; x must not be 0.
constexpr unsigned lowest_bit(uint64_t x) { return static_cast<unsigned>(__builtin_ctzll(x)); }

template <class T>
constexpr T min_of(T a, T b) { return a < b ? a : b; }
template <class T>
constexpr T max_of(T a, T b) { return a > b ? a : b; }

}  // namespace ebb
