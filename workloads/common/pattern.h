// What workloads write into blocks, and how they find out that it is still there.
//
// Called by every workload, from any thread. Each block has a tag of its own; its bytes follow from tag
// and offset, so that a block that overlaps another, or that the allocator scribbled on, is found by
// whoever looks next. A mismatch ends the process with exit code 3.
// Three densities, because checking must not drown what is measured:
//   fill / check           every byte: set-up, and small blocks
//   stamp / check_stamp    the first and the last word: inner loops
//   touch / check_touch    one word in every OS page: big blocks, which must be resident
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/exits.h"
#include "common/random.h"

namespace tidemark {

// Smallest step between touched words; every supported OS page is a multiple of it.
constexpr std::size_t kTouchStepBytes = 4096;

inline void store_word(void* block, std::size_t offset, std::uint64_t word) {
  std::memcpy(static_cast<char*>(block) + offset, &word, sizeof word);
}

inline std::uint64_t load_word(const void* block, std::size_t offset) {
  std::uint64_t word;
  std::memcpy(&word, static_cast<const char*>(block) + offset, sizeof word);
  return word;
}

inline void check_word(const void* block, std::size_t size, std::size_t offset, std::uint64_t expected) {
  const std::uint64_t found = load_word(block, offset);
  if (found != expected) [[unlikely]]
    fail_contents(block, size, offset, expected, found);
}

// The first word of a filled, stamped or touched block of at least eight bytes is its tag itself, so a
// block may be filled in set-up and checked as a stamp later.
void fill(void* block, std::size_t size, std::uint64_t tag);
void check(const void* block, std::size_t size, std::uint64_t tag);

// For blocks of at least 16 bytes.
inline void stamp(void* block, std::size_t size, std::uint64_t tag) {
  store_word(block, 0, tag);
  store_word(block, size - sizeof tag, ~tag);
}
inline void check_stamp(const void* block, std::size_t size, std::uint64_t tag) {
  check_word(block, size, 0, tag);
  check_word(block, size, size - sizeof tag, ~tag);
}

// Spoils the first word of a block that is about to be freed. Whoever still holds the same memory, since
// the allocator gave it out twice, then finds a word that nobody wrote. Needed where a block describes
// itself, because its second holder would believe what the first one wrote.
inline void spoil(void* block) { store_word(block, 0, 0xdeadf1eedeadf1eeu); }

// For blocks of at least eight bytes.
void touch(void* block, std::size_t size, std::uint64_t tag);
void check_touch(const void* block, std::size_t size, std::uint64_t tag);

// Ends the process unless `size` bytes from `begin` on all read zero.
void check_zero(const void* begin, std::size_t size);

}  // namespace tidemark
