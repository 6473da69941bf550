// Formatting without allocation; see text.h.
#include "common/text.h"

#include <unistd.h>
#include <cerrno>

namespace tidemark {

void Text::add_byte(char byte) {
  if (used_ == kCapacityBytes) {
    truncated_ = true;
    return;
  }
  bytes_[used_++] = byte;
}

Text& Text::add(std::string_view part) {
  for (const char byte : part) add_byte(byte);
  return *this;
}

Text& Text::add_unsigned(std::uint64_t value) {
  char digits[20];
  std::size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count != 0) add_byte(digits[--count]);
  return *this;
}

Text& Text::add_hex16(std::uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) add_byte("0123456789abcdef"[(value >> shift) & 15]);
  return *this;
}

Text& Text::add_number(double value) {
  if (value < 0) {
    add_byte('-');
    value = -value;
  }
  constexpr std::uint64_t kScale = 1'000'000;
  std::uint64_t whole = static_cast<std::uint64_t>(value);
  std::uint64_t fraction = static_cast<std::uint64_t>((value - static_cast<double>(whole)) * kScale + 0.5);
  if (fraction == kScale) {
    ++whole;
    fraction = 0;
  }
  add_unsigned(whole);
  if (fraction == 0) return *this;
  add_byte('.');
  for (std::uint64_t unit = kScale / 10; fraction != 0; unit /= 10) {
    add_byte(static_cast<char>('0' + fraction / unit));
    fraction %= unit;
  }
  return *this;
}

Text& Text::add_json_string(std::string_view value) {
  add_byte('"');
  for (const char byte : value) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '"' || byte == '\\') {
      add_byte('\\');
      add_byte(byte);
    } else if (code < 0x20) {
      add("\\u00");
      add_byte("0123456789abcdef"[code >> 4]);
      add_byte("0123456789abcdef"[code & 15]);
    } else {
      add_byte(byte);
    }
  }
  add_byte('"');
  return *this;
}

bool write_all(int descriptor, std::string_view bytes) {
  const char* next = bytes.data();
  std::size_t left = bytes.size();
  while (left != 0) {
    const ssize_t written = write(descriptor, next, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    next += written;
    left -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace tidemark
