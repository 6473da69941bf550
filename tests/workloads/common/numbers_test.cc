// Random numbers, checksums and percentiles: fixed sequences, bounds, and independence of order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "common/checksum.h"
#include "common/latency.h"
#include "common/random.h"

namespace tidemark {
namespace {

TEST(Random, SplitMixGivesItsPublishedSequence) {
  // The first outputs of SplitMix64 from state 1234567, as its authors' reference program prints them.
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  constexpr std::array<std::uint64_t, 3> kPublished = {6457827717110365317u, 3203168211198807973u,
                                                       9817491932198370423u};
  for (std::size_t index = 0; index < kPublished.size(); ++index) {
    EXPECT_EQ(mix(1234567 + index * kStep), kPublished[index]);
  }
}

TEST(Random, SeedsAndStreamsDiffer) {
  EXPECT_EQ(Random(1).next(), Random(1).next());
  EXPECT_NE(Random(1).next(), Random(2).next());
  EXPECT_NE(Random(1, 0).next(), Random(1, 1).next());
  EXPECT_NE(Random(0).next(), 0u);
}

TEST(Random, StaysInBoundsAndReachesThem) {
  Random random(7);
  std::array<unsigned, 10> seen{};
  for (int draw = 0; draw < 10'000; ++draw) ++seen[random.between(3, 12) - 3];
  // A fair die of ten faces lies within 800 to 1200 by more than six standard deviations.
  for (const unsigned count : seen) EXPECT_TRUE(count > 800 && count < 1200) << count;
  EXPECT_EQ(Random::scale(0, 1000), 0u);
  EXPECT_EQ(Random::scale(UINT64_MAX, 1000), 999u);
}

TEST(Checksum, DoesNotDependOnOrderOrOnWhoAdds) {
  Checksum forward, backward, part;
  for (std::uint64_t value = 0; value < 10; ++value) forward.add(value);
  for (std::uint64_t value = 10; value-- != 5;) backward.add(value);
  for (std::uint64_t value = 5; value-- != 0;) part.add(value);
  backward.merge(part);
  EXPECT_EQ(forward.value(), backward.value());
}

TEST(Checksum, SeesAMissingAndADoubledValue) {
  Checksum right, missing, doubled;
  for (std::uint64_t value = 0; value < 3; ++value) right.add(value);
  missing.add(0);
  missing.add(1);
  doubled.add(0);
  doubled.add(1);
  doubled.add(1);
  EXPECT_NE(right.value(), missing.value());
  EXPECT_NE(right.value(), doubled.value());
}

TEST(Latency, IsExactForSmallDurations) {
  Latency latency;
  for (std::uint64_t nanoseconds = 1; nanoseconds <= 20; ++nanoseconds) latency.add(nanoseconds);
  EXPECT_EQ(latency.percentile_ns(500), 10);
  EXPECT_EQ(latency.percentile_ns(1000), 20);
  EXPECT_EQ(latency.maximum_ns(), 20);
}

TEST(Latency, IsNeverBelowAndAtMostAThirtySecondAbove) {
  Random random(3);
  Latency latency;
  std::vector<std::uint64_t> all;
  for (int draw = 0; draw < 5000; ++draw) {
    all.push_back(random.next() >> random.between(20, 63));
    latency.add(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const std::uint64_t per_mille : {1u, 10u, 500u, 900u, 990u, 999u, 1000u}) {
    const auto exact = static_cast<double>(all[(all.size() * per_mille + 999) / 1000 - 1]);
    EXPECT_GE(latency.percentile_ns(per_mille), exact) << per_mille;
    EXPECT_LE(latency.percentile_ns(per_mille), exact * 33 / 32) << per_mille;
  }
}

TEST(Latency, MergesAndIsEmptyAtFirst) {
  Latency one, other;
  EXPECT_EQ(one.percentile_ns(999), 0);
  one.add(5);
  other.add(UINT64_MAX);
  one.merge(other);
  EXPECT_EQ(one.count(), 2u);
  EXPECT_EQ(one.percentile_ns(500), 5);
  EXPECT_EQ(one.maximum_ns(), static_cast<double>(UINT64_MAX));
}

}  // namespace
}  // namespace tidemark
