// Text without allocation: builds one line in place and writes it to standard error with one call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/os.h"

namespace ebb {

class Message {
 public:
  Message& text(const char* s) {
    while (*s != '\0') put(*s++);
    return *this;
  }
  Message& number(uint64_t value) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }
  Message& hex(uint64_t value) {
    text("0x");
    bool started = false;
    for (int shift = 60; shift >= 0; shift -= 4) {
      unsigned digit = (value >> shift) & 15u;
      started = started || digit != 0 || shift == 0;
      if (started) put("0123456789abcdef"[digit]);
    }
    return *this;
  }
  Message& pointer(const void* p) { return hex(reinterpret_cast<uintptr_t>(p)); }

  // Ends the line and writes it.
  void print() {
    put('\n');
    os::write_error(buffer_, length_);
    length_ = 0;
  }
  const char* data() const { return buffer_; }
  size_t length() const { return length_; }

 private:
  void put(char c) {
    if (length_ < sizeof(buffer_)) buffer_[length_++] = c;
  }
  char buffer_[512];
  size_t length_ = 0;
};

}  // namespace ebb
