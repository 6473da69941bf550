// Free spans by length: exact lists below 64 slices, eight lists a doubling above. Used by Arena under its
// lock; not thread-safe by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arena/slice.h"
#include "base/bits.h"
#include "base/check.h"

namespace ebb {

class SpanBins {
 public:
  void insert(Slice* span) {
    size_t bin = bin_of(span->slices);
    Slice* head = heads_[bin];
    span->prev = nullptr;
    span->next = head;
    if (head != nullptr) head->prev = span;
    heads_[bin] = span;
    used_[bin / 64] |= uint64_t{1} << (bin % 64);
  }

  void remove(Slice* span) {
    if (span->next != nullptr) span->next->prev = span->prev;
    if (span->prev != nullptr) {
      span->prev->next = span->next;
    } else {
      size_t bin = bin_of(span->slices);
      EBB_ASSERT(heads_[bin] == span);
      heads_[bin] = span->next;
      if (span->next == nullptr) used_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
    }
  }

  // A span of at least `slices`, or null. Close to the best fit: within a bin of mixed lengths the first
  // kBinSearch spans are looked at, then the next bin, where all fit.
  Slice* find(uint32_t slices) const {
    size_t bin = bin_of(slices);
    if (bin >= kExactBins) {
      Slice* span = heads_[bin];
      for (int i = 0; span != nullptr && i < kBinSearch; ++i, span = span->next) {
        if (span->slices >= slices) return span;
      }
      ++bin;
    }
    for (size_t word = bin / 64; word < kWords; ++word) {
      uint64_t bits = used_[word];
      if (word == bin / 64) bits &= ~uint64_t{0} << (bin % 64);
      if (bits != 0) return heads_[word * 64 + lowest_bit(bits)];
    }
    return nullptr;
  }

  // Calls visit(span) for every span; `visit` must not change the bins.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Slice* head : heads_) {
      for (Slice* span = head; span != nullptr; span = span->next) visit(span);
    }
  }

 private:
  static constexpr size_t kExactBins = 64;
  static constexpr size_t kWords = 4;
  static constexpr size_t kBins = kWords * 64;
  static constexpr int kBinSearch = 8;

  static size_t bin_of(uint32_t slices) {
    if (slices < kExactBins) return slices;
    unsigned log = floor_log2(slices);  // at least 6
    size_t eighth = (slices >> (log - 3)) & 7;
    return min_of(kExactBins + (log - 6) * 8 + eighth, kBins - 1);
  }

  Slice* heads_[kBins] = {};
  uint64_t used_[kWords] = {};
};

}  // namespace ebb
