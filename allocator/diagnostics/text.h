// Text into a buffer of fixed size: cut at its end, counted in full as snprintf does. No allocation, no locale.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb {

class Text {
 public:
  // Writes at most `capacity` bytes, the terminating zero included.
  Text(char* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) { clear(); }

  void clear() {
    length_ = 0;
    end();
  }

  Text& text(const char* s) {
    for (; *s != '\0'; ++s) put(*s);
    return end();
  }

  Text& number(uint64_t value) { return padded(value, 0); }

  // Right-aligned in `width` columns.
  Text& padded(uint64_t value, int width) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    for (; width > count; --width) put(' ');
    while (count > 0) put(digits[--count]);
    return end();
  }

  // Bytes for people, "12.3 MiB", right-aligned in `width` columns.
  Text& size(uint64_t bytes, int width) {
    static constexpr const char* kUnits[] = {" B  ", " KiB", " MiB", " GiB", " TiB"};
    unsigned unit = 0;
    uint64_t tenths = bytes;
    for (uint64_t rest = bytes; rest >= 1024 && unit < 4; rest /= 1024) ++unit;
    if (unit == 0) return padded(bytes, width - 4).text(kUnits[0]);
    tenths = (bytes >> (10 * (unit - 1))) * 10 / 1024;
    padded(tenths / 10, width - 6).text(".").number(tenths % 10);
    return text(kUnits[unit]);
  }

  // Spaces up to `column`.
  Text& to_column(size_t column) {
    while (length_ < column) put(' ');
    return end();
  }

  const char* data() const { return buffer_; }
  size_t length() const { return length_; }  // of the whole text, whatever was cut

 private:
  void put(char c) {
    if (length_ + 1 < capacity_) buffer_[length_] = c;
    ++length_;
  }
  Text& end() {
    if (capacity_ != 0) buffer_[length_ < capacity_ ? length_ : capacity_ - 1] = '\0';
    return *this;
  }

  char* buffer_;
  size_t capacity_;
  size_t length_ = 0;
};

}  // namespace ebb
