// Free spans by length, against a plain list: what is found is long enough, and close to the shortest.
#include "arena/span_bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/units.h"

namespace ebb {
namespace {

constexpr uint32_t kMostSlices = 100000;

// Spans of one length, in the sense of the bins: exact below 64 slices, eight a doubling above.
uint32_t length_of(const Slice& span) {
  if (span.slices < 64) return span.slices;
  uint32_t step = std::bit_floor(span.slices) / 8;
  return span.slices / step * step;
}

TEST(SpanBins, FindsNothingInNothing) {
  SpanBins bins;
  EXPECT_EQ(bins.find(1, SpanBins::kWarm), nullptr);
  EXPECT_EQ(bins.find(kMostSlices, SpanBins::kWarm), nullptr);
}

TEST(SpanBins, FindsTheOnlySpanForEveryLengthUpToItsOwn) {
  for (uint32_t slices : {1u, 2u, 63u, 64u, 65u, 71u, 72u, 127u, 128u, 1000u, 4097u, 70000u, 1u << 20, 1u << 31}) {
    SpanBins bins;
    Slice span{};
    span.slices = slices;
    bins.insert(&span, SpanBins::kWarm);
    EXPECT_EQ(bins.find(slices, SpanBins::kWarm), &span) << slices;
    EXPECT_EQ(bins.find(1, SpanBins::kWarm), &span) << slices;
    EXPECT_EQ(bins.find(slices > 1 ? slices - 1 : 1, SpanBins::kWarm), &span) << slices;
    EXPECT_EQ(bins.find(slices + 1, SpanBins::kWarm), nullptr) << slices;
    bins.remove(&span);
    EXPECT_EQ(bins.find(1, SpanBins::kWarm), nullptr) << slices;
  }
}

// Single slices come from the shortest span there is, others from the lowest of the four shortest lengths that fit.
TEST(SpanBins, TheLowestOfTheNextLengthsIsTaken) {
  std::vector<Slice> spans(63);
  SpanBins bins;
  for (uint32_t i = 0; i < spans.size(); ++i) {
    spans[i].slices = 63 - i;  // short ones lie high
    bins.insert(&spans[i], SpanBins::kWarm);
  }
  EXPECT_EQ(bins.find(1, SpanBins::kWarm)->slices, 1u);
  for (uint32_t slices = 2; slices <= 63; ++slices) {
    EXPECT_EQ(bins.find(slices, SpanBins::kWarm)->slices, std::min(slices + 3, 63u));
  }
}

// The newest of a length first: its memory is the warmest.
TEST(SpanBins, EqualLengthsComeBackNewestFirst) {
  Slice spans[3] = {};
  SpanBins bins;
  for (Slice& span : spans) {
    span.slices = 5;
    bins.insert(&span, SpanBins::kWarm);
  }
  for (int i = 2; i >= 0; --i) {
    EXPECT_EQ(bins.find(5, SpanBins::kWarm), &spans[i]);
    bins.remove(&spans[i]);
  }
}

TEST(SpanBins, WarmAndColdSpansAreApart) {
  for (uint32_t slices : {1u, 63u, 64u, 5000u}) {
    SpanBins bins;
    Slice warm{}, cold{};
    warm.slices = cold.slices = slices;
    bins.insert(&warm, SpanBins::kWarm);
    EXPECT_EQ(bins.find(slices, SpanBins::kCold), nullptr);
    bins.insert(&cold, SpanBins::kCold);
    EXPECT_EQ(bins.find(slices, SpanBins::kWarm), &warm);
    EXPECT_EQ(bins.find(slices, SpanBins::kCold), &cold);
    bins.remove(&warm);
    EXPECT_EQ(bins.find(slices, SpanBins::kWarm), nullptr);
    EXPECT_EQ(bins.find(slices, SpanBins::kCold), &cold);
  }
}

TEST(SpanBins, RandomHistoryAgainstAList) {
  std::mt19937 random(5);
  std::vector<std::unique_ptr<Slice>> in;
  SpanBins bins;
  for (int step = 0; step < 60000; ++step) {
    if (in.size() < 200 && random() % 2 == 0) {
      auto span = std::make_unique<Slice>();
      unsigned log = random() % 17;
      span->slices = (1u << log) + static_cast<uint32_t>(random() % (1u << log));
      bins.insert(span.get(), SpanBins::kWarm);
      in.push_back(std::move(span));
    } else if (!in.empty() && random() % 2 == 0) {
      size_t which = random() % in.size();
      bins.remove(in[which].get());
      std::swap(in[which], in.back());
      in.pop_back();
    }
    uint32_t wanted = 1 + static_cast<uint32_t>(random() % kMostSlices);
    Slice* found = bins.find(wanted, SpanBins::kWarm);
    uint32_t surely = wanted < 64 ? wanted : wanted + wanted / 8;
    bool must = std::any_of(in.begin(), in.end(), [surely](auto& span) { return span->slices >= surely; });
    if (found == nullptr) {
      ASSERT_FALSE(must) << "a span of at least " << surely << " is there, none was found for " << wanted;
      continue;
    }
    ASSERT_GE(found->slices, wanted);
    // What is found is of one of the four shortest lengths that fit, or of the one behind where the shortest are in
    // the bin of the wanted length.
    std::set<uint32_t> shorter;
    for (auto& span : in) {
      if (span->slices >= wanted && length_of(*span) < length_of(*found)) shorter.insert(length_of(*span));
    }
    ASSERT_LE(shorter.size(), 4u);
  }
  size_t count = 0;
  bins.for_each([&count](Slice*) { ++count; });
  EXPECT_EQ(count, in.size());
}

}  // namespace
}  // namespace ebb
