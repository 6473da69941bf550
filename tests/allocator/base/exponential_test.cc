// Logarithm and exponential against libm's, and the waits made of them.
#include "base/exponential.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace {

constexpr double kExact = 1e-12;  // as the header promises

TEST(Exponential, TheLogarithmIsThatOfLibm) {
  for (double x : {0x1p-53, 1e-300, 1e-9, 0.5, 0.7071, 0.7072, 0.999999, 1.000001, 1.4142, 1.4143, 2.0, 1e9, 1e300}) {
    EXPECT_NEAR(ebb::natural_log(x), std::log(x), kExact * std::fabs(std::log(x))) << x;
  }
  EXPECT_EQ(ebb::natural_log(1.0), 0.0);
}

TEST(Exponential, TheShareIsThatOfLibm) {
  EXPECT_EQ(ebb::share_below(0), 0.0);
  for (double x = 1e-12; x < 100; x *= 1.07) {
    EXPECT_NEAR(ebb::share_below(x), -std::expm1(-x), kExact * -std::expm1(-x)) << x;
  }
}

TEST(Exponential, WaitsAreBoundedAndHaveTheirMean) {
  EXPECT_EQ(ebb::exponential_wait(UINT64_MAX, 5), 0.0);
  EXPECT_NEAR(ebb::exponential_wait(0, 1), 53 * ebb::kLn2, 1e-9);
  std::mt19937_64 random(7);
  constexpr int kWaits = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kWaits; ++i) {
    double wait = ebb::exponential_wait(random(), 10);
    sum += wait;
    squares += wait * wait;
  }
  EXPECT_NEAR(sum / kWaits, 10, 5 * 10 / std::sqrt(kWaits));
  EXPECT_NEAR(squares / kWaits, 200, 5 * std::sqrt(20 * 1e4) / std::sqrt(kWaits));  // 2 mean^2; its variance 20 mean^4
}

}  // namespace
