// Size classes: the block sizes that small and medium requests are rounded up to.
//
//   16, 32 … 128             in steps of 16
//   144, 160 … 256, 288 …    eight steps a doubling, up to 1 KiB
//   1088, 1152, 1280 … 2048, 2176 …  as before, and half a step behind each power of two, up to 64 KiB
//
// So a block is at most 12.5 % larger than its request from 128 bytes up, and 11.1 % from 1 KiB up (tests check every
// size). The half step is for what is most common there, a power of two with a header before it. Requests above
// kLargestBlock get a span of slices of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/units.h"

namespace ebb {

constexpr size_t kLinearClasses = 8;
constexpr size_t kLinearMost = kLinearClasses * kBlockAlign;  // 128
constexpr size_t kStepsPerDoubling = 8;
constexpr size_t kLargestBlock = 64 * KiB;
constexpr size_t kHalfStepsFrom = 1 * KiB;
constexpr size_t kEvenClasses = kLinearClasses + 3 * kStepsPerDoubling;  // up to there
constexpr size_t kClassCount = kEvenClasses + 6 * (kStepsPerDoubling + 1);
static_assert(kLinearMost << 3 == kHalfStepsFrom && kHalfStepsFrom << 6 == kLargestBlock);

// Smaller classes borrow their first blocks from this one: with 16 bytes between them, a thread that holds a few
// blocks of some sizes would touch an OS page for each size.
constexpr size_t kLendingClass = kLinearClasses - 1;
constexpr uint8_t kBorrowedMost = 4;

// Slices of a page, by the size of its blocks: at least eight blocks, from 8 KiB up at least twelve. A thread keeps up to
// two pages of each class, so longer ones hold more that other threads could use; with shorter ones a live set of some
// blocks overflows its page again and again (docs/decisions/005-size-classes-and-huge-pages.md has the figures).
constexpr size_t kSmallMost = 8 * KiB, kMediumMost = 16 * KiB, kLongMost = 32 * KiB;
constexpr uint32_t kMediumSlices = 3, kLongSlices = 6, kLongestSlices = 16;

// The class of a request; size <= kLargestBlock.
constexpr size_t class_of(size_t size) {
  if (size <= kLinearMost) return size == 0 ? 0 : (size - 1) / kBlockAlign;
  unsigned log = floor_log2(size - 1);
  size_t halves = ((size - 1) >> (log - 4)) & 15;  // half steps behind the power of two
  if (size <= kHalfStepsFrom) return kLinearClasses + (log - 7) * kStepsPerDoubling + halves / 2;
  return kEvenClasses + (log - 10) * (kStepsPerDoubling + 1) + halves / 2 + (halves != 0);
}

constexpr size_t class_bytes(size_t cls) {
  if (cls < kLinearClasses) return (cls + 1) * kBlockAlign;
  if (cls < kEvenClasses) {
    size_t step = cls - kLinearClasses;
    return (kStepsPerDoubling + step % kStepsPerDoubling + 1) << (step / kStepsPerDoubling + 4);
  }
  size_t step = (cls - kEvenClasses) % (kStepsPerDoubling + 1);
  size_t power = kHalfStepsFrom << ((cls - kEvenClasses) / (kStepsPerDoubling + 1));
  return power + (step == 0 ? power / 16 : power / kStepsPerDoubling * step);
}

// Whether blocks in a page of one slice take more than 1.123 times what the smallest requests of their class ask for,
// with what they leave of the last OS page that they lie on. With the metadata, more than 1.125 times.
constexpr bool wastes_slice_end(size_t cls) {
  constexpr size_t kCommonOsPage = 4 * KiB;
  size_t blocks = kSliceBytes / class_bytes(cls);
  size_t smallest_request = class_bytes(cls - 1) + 1;
  return align_up(blocks * class_bytes(cls), kCommonOsPage) * 1000 > blocks * smallest_request * 1123;
}

constexpr uint32_t class_slices(size_t cls) {
  size_t bytes = class_bytes(cls);
  if (bytes <= kSmallMost) return bytes > kHalfStepsFrom && wastes_slice_end(cls) ? 2 : 1;
  if (bytes <= kMediumMost) return kMediumSlices;
  return bytes <= kLongMost ? kLongSlices : kLongestSlices;
}

// Requests up to this are classified by one table byte in the thread heap; the table has an entry for each
// multiple of kBlockAlign.
constexpr size_t kTableMost = 2 * KiB;
constexpr size_t kTableEntries = kTableMost / kBlockAlign + 1;

struct ClassTable {
  uint8_t entry[kTableEntries] = {};
};
constexpr ClassTable make_class_table() {
  ClassTable table;
  for (size_t i = 0; i < kTableEntries; ++i) table.entry[i] = static_cast<uint8_t>(class_of(i * kBlockAlign));
  return table;
}

// The same for greater requests, above kTableMost: one table for all heaps, with an entry for each kMediumStep bytes.
constexpr size_t kMediumStep = kTableMost / 16;
struct MediumTable {
  uint8_t entry[kLargestBlock / kMediumStep] = {};
};
constexpr MediumTable make_medium_table() {
  MediumTable table;
  for (size_t i = 0; i < kLargestBlock / kMediumStep; ++i) {
    table.entry[i] = static_cast<uint8_t>(class_of((i + 1) * kMediumStep));
  }
  return table;
}
inline constexpr MediumTable kMediumClasses = make_medium_table();

// The class of a request above kTableMost, up to kLargestBlock.
constexpr size_t medium_class_of(size_t size) { return kMediumClasses.entry[(size - 1) / kMediumStep]; }

// Whether a block of a class's size stays where it is when it is resized: while at least half of it is in use.
constexpr bool stays_in_block(size_t usable, size_t size) { return size <= usable && size >= usable / 2; }

// The class whose blocks hold `size` at `alignment`, a power of two of at least kBlockAlign: pages begin at a slice,
// so a block is aligned when its class's size is a multiple of the alignment. That holds for the class of the size
// rounded up to it: either the alignment is a multiple of the step between the classes there, and the class is of just
// that size, or it divides the step. kClassCount when no class will do.
constexpr size_t class_of_aligned(size_t alignment, size_t size) {
  if (size > kLargestBlock) return kClassCount;
  size_t rounded = align_up(size | (size == 0), alignment);
  return rounded > kLargestBlock ? kClassCount : class_of(rounded);
}

// A page is *sparse* when so few of its blocks are live that a tenth of its OS pages can be expected free;
// then it is worth giving up, so that those can be returned. With m blocks an OS page and a share u of the
// blocks live, (1 - u)^m of the OS pages are free, hence u = 1 - 0.1^(1/m). In 1/256, by log2 of m.
constexpr uint32_t sparse_blocks(size_t block_bytes, size_t os_page_bytes, uint32_t capacity) {
  constexpr uint16_t kShare256[] = {230, 175, 112, 64, 34, 18, 9, 5, 2, 1, 1, 1, 1};
  size_t blocks = block_bytes >= os_page_bytes ? 1 : os_page_bytes / block_bytes;
  uint32_t share = kShare256[min_of<size_t>(floor_log2(blocks), 12)];
  return capacity * share / 256;
}

namespace class_proof {
constexpr bool classes_hold() {
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    size_t bytes = class_bytes(cls);
    if (bytes % kBlockAlign != 0 || class_of(bytes) != cls) return false;
    if (cls > 0 && class_of(class_bytes(cls - 1) + 1) != cls) return false;
  }
  return class_bytes(kClassCount - 1) == kLargestBlock;
}
static_assert(classes_hold(), "class_of and class_bytes are each other's inverse");
constexpr bool aligned_classes_hold() {
  for (size_t alignment = kBlockAlign; alignment <= kLargestBlock; alignment *= 2) {
    for (size_t cls = 0; cls < kClassCount; ++cls) {
      size_t aligned = class_of_aligned(alignment, class_bytes(cls));
      if (aligned != kClassCount && class_bytes(aligned) % alignment != 0) return false;
    }
  }
  return class_of_aligned(2 * kLargestBlock, 1) == kClassCount;
}
static_assert(aligned_classes_hold(), "the class of an aligned request has aligned blocks");
}  // namespace class_proof

}  // namespace ebb
