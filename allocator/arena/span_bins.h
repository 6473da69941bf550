// Free spans by length, warm ones and cold ones: exact lists below 64 slices, eight lists a doubling above. Used by Arena
// under its lock; not thread-safe by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arena/slice.h"
#include "base/bits.h"
#include "base/check.h"

namespace ebb {

class SpanBins {
 public:
  enum Tier : uint32_t { kWarm = 0, kCold = 1 };

  void insert(Slice* span, Tier tier) {
    uint32_t bin = tier * kBins + bin_of(span->slices);
    span->bin = bin;
    Slice* head = heads_[bin];
    span->prev = nullptr;
    span->next = head;
    if (head != nullptr) head->prev = span;
    heads_[bin] = span;
    used_[bin / 64] |= uint64_t{1} << (bin % 64);
  }

  void remove(Slice* span) {
    Slice* next = span->next;
    if (next != nullptr) next->prev = span->prev;
    if (span->prev != nullptr) {
      span->prev->next = next;
      return;
    }
    uint32_t bin = span->bin;
    EBB_ASSERT(heads_[bin] == span);
    heads_[bin] = next;
    if (next == nullptr) used_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
  }

  // A span of at least `slices`, or null. Close to the best fit: within a bin of mixed lengths the first
  // kBinSearch spans are looked at, then the next bins, where all fit. There, of the kLengths shortest lengths, the
  // span that lies lowest is taken: what is in use gathers in front, on memory that is warm. Single slices go to the
  // shortest span, and long ones are too few to matter.
  Slice* find(uint32_t slices, Tier tier) const {
    uint32_t bin = bin_of(slices);
    Slice* const* heads = heads_ + tier * kBins;
    if (bin >= kExactBins) {
      Slice* span = heads[bin];
      for (int i = 0; span != nullptr && i < kBinSearch; ++i, span = span->next) {
        if (span->slices >= slices) return span;
      }
      ++bin;
    }
    int lengths = slices > 1 && slices < kExactBins ? kLengths : 1;
    Slice* lowest = nullptr;
    const uint64_t* used = used_ + tier * kWords;
    uint64_t not_below = ~uint64_t{0} << (bin % 64);
    for (uint32_t word = bin / 64; word < kWords; ++word, not_below = ~uint64_t{0}) {
      for (uint64_t bits = used[word] & not_below; bits != 0; bits &= bits - 1) {
        Slice* span = heads[word * 64 + lowest_bit(bits)];
        if (lowest == nullptr || span < lowest) lowest = span;
        if (--lengths == 0) return lowest;
      }
    }
    return lowest;
  }

  // Calls visit(span) for every span; `visit` must not change the bins.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Slice* head : heads_) {
      for (Slice* span = head; span != nullptr; span = span->next) visit(span);
    }
  }

 private:
  static constexpr uint32_t kExactBins = 64;
  static constexpr uint32_t kWords = 5;  // of a tier
  static constexpr uint32_t kBins = kWords * 64;
  static constexpr int kBinSearch = 8;
  static constexpr int kLengths = 4;

  static uint32_t bin_of(uint32_t slices) {
    if (slices < kExactBins) return slices;
    unsigned log = floor_log2(slices);
    return kExactBins + (log - 6) * 8 + ((slices >> (log - 3)) & 7);
  }
  static_assert(kExactBins + (31 - 6) * 8 + 7 < kBins, "a bin for every length");

  Slice* heads_[2 * kBins] = {};
  uint64_t used_[2 * kWords] = {};
};

}  // namespace ebb
