// The two functions of the exponential distribution that sampling needs, without libm: Ebb needs libc alone. Pure;
// both are exact to 1e-12 of their value (tests/allocator/base/exponential_test.cc).
#pragma once

#include <cstdint>

namespace ebb {

constexpr double kLn2 = 0.693147180559945309417;

// The natural logarithm of a positive, normal number: with x = m * 2^k and m near one, k ln 2 + 2 artanh((m-1)/(m+1)).
constexpr double natural_log(double x) {
  constexpr double kRootOfTwo = 1.41421356237309504880;
  uint64_t bits = __builtin_bit_cast(uint64_t, x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = __builtin_bit_cast(double, (bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1023} << 52));
  if (m > kRootOfTwo) {
    m /= 2;
    ++exponent;
  }
  double z = (m - 1) / (m + 1), square = z * z, sum = 0;  // |z| < 0.172
  for (int i = 17; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
  return exponent * kLn2 + 2 * z * sum;
}

// 1 - exp(-x), for x >= 0: the share of waits that are shorter than x times their mean.
constexpr double share_below(double x) {
  if (x > 40) return 1;
  // exp(-x) = 2^-k exp(-r) with r < ln 2; 1 - exp(-r) is summed by itself, so that small x keep all their digits.
  int k = static_cast<int>(x / kLn2);
  double r = x - k * kLn2, sum = 0;
  for (int i = 18; i >= 1; --i) sum = r / i * (1 - sum);
  return k == 0 ? sum : 1 - (1 - sum) / static_cast<double>(uint64_t{1} << k);
}

// A wait with this mean from 64 random bits: never negative, at most 37 times the mean.
constexpr double exponential_wait(uint64_t random_bits, double mean) {
  double uniform = static_cast<double>((random_bits >> 11) + 1) * 0x1p-53;  // in (0, 1]
  return -natural_log(uniform) * mean;
}

}  // namespace ebb
