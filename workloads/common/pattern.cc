// Byte patterns; see pattern.h.
#include "common/pattern.h"

namespace tidemark {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

// A multiplier keeps the inner loop to one multiplication a word; offset zero gives the tag itself.
constexpr std::uint64_t word_at(std::uint64_t tag, std::size_t offset) { return tag ^ (offset * 0x9e3779b97f4a7c15u); }

// The bytes behind the last whole word.
void fill_tail(char* bytes, std::size_t from, std::size_t size, std::uint64_t tag) {
  const std::uint64_t word = word_at(tag, from);
  std::memcpy(bytes + from, &word, size - from);
}

void check_tail(const char* bytes, std::size_t from, std::size_t size, std::uint64_t tag) {
  const std::uint64_t word = word_at(tag, from);
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
  std::memcpy(&expected, &word, size - from);
  std::memcpy(&found, bytes + from, size - from);
  if (expected != found) fail_contents(bytes, size, from, expected, found);
}

}  // namespace

void fill(void* block, std::size_t size, std::uint64_t tag) {
  std::size_t offset = 0;
  for (; offset + kWordBytes <= size; offset += kWordBytes) store_word(block, offset, word_at(tag, offset));
  if (offset != size) fill_tail(static_cast<char*>(block), offset, size, tag);
}

void check(const void* block, std::size_t size, std::uint64_t tag) {
  std::size_t offset = 0;
  for (; offset + kWordBytes <= size; offset += kWordBytes) {
    check_word(block, size, offset, word_at(tag, offset));
  }
  if (offset != size) check_tail(static_cast<const char*>(block), offset, size, tag);
}

void touch(void* block, std::size_t size, std::uint64_t tag) {
  for (std::size_t offset = 0; offset + kWordBytes <= size; offset += kTouchStepBytes) {
    store_word(block, offset, word_at(tag, offset));
  }
}

void check_touch(const void* block, std::size_t size, std::uint64_t tag) {
  for (std::size_t offset = 0; offset + kWordBytes <= size; offset += kTouchStepBytes) {
    check_word(block, size, offset, word_at(tag, offset));
  }
}

void check_zero(const void* begin, std::size_t size) {
  const char* bytes = static_cast<const char*>(begin);
  std::size_t offset = 0;
  for (; offset + kWordBytes <= size; offset += kWordBytes) check_word(begin, size, offset, 0);
  for (; offset < size; ++offset) {
    if (bytes[offset] != 0) fail_contents(begin, size, offset, 0, static_cast<unsigned char>(bytes[offset]));
  }
}

}  // namespace tidemark
