// Percentiles of durations, in fixed memory.
//
// A Latency belongs to one thread; merge() joins them. Buckets are exact below 32 ns and then 32 to each
// doubling, so a percentile is at most 1/32 above the true one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tidemark {

class Latency {
 public:
  void add(std::uint64_t nanoseconds) {
    ++counts_[bucket_of(nanoseconds)];
    ++total_;
    if (nanoseconds > maximum_ns_) maximum_ns_ = nanoseconds;
  }

  void merge(const Latency& other) {
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) counts_[bucket] += other.counts_[bucket];
    total_ += other.total_;
    if (other.maximum_ns_ > maximum_ns_) maximum_ns_ = other.maximum_ns_;
  }

  // Smallest bucket top that at least `per_mille` of a thousand durations do not exceed; 0 when empty.
  double percentile_ns(std::uint64_t per_mille) const {
    const std::uint64_t wanted = (total_ * per_mille + 999) / 1000;
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      seen += counts_[bucket];
      if (seen >= wanted && seen != 0) {
        const std::uint64_t top = top_of(bucket);
        return static_cast<double>(top < maximum_ns_ ? top : maximum_ns_);
      }
    }
    return 0;
  }

  double maximum_ns() const { return static_cast<double>(maximum_ns_); }
  std::uint64_t count() const { return total_; }

 private:
  static constexpr int kStepBits = 5;
  static constexpr std::uint64_t kSteps = std::uint64_t{1} << kStepBits;
  static constexpr std::size_t kBuckets = (64 - kStepBits + 1) * kSteps;

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < kSteps) return value;
    const int shift = static_cast<int>(std::bit_width(value)) - 1 - kStepBits;
    return static_cast<std::size_t>(shift) * kSteps + (value >> shift);
  }

  static std::uint64_t top_of(std::size_t bucket) {
    if (bucket < kSteps) return bucket;
    const std::size_t shift = bucket / kSteps - 1;
    const std::uint64_t step = bucket % kSteps + kSteps;
    return ((step + 1) << shift) - 1;
  }

  std::uint64_t counts_[kBuckets] = {};
  std::uint64_t total_ = 0;
  std::uint64_t maximum_ns_ = 0;
};

}  // namespace tidemark
