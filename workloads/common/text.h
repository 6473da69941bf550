// Text in a fixed buffer, and writing it with write(2).
//
// Owns: every byte a workload prints. Called by the argument parser, the session and the fatal exits.
// Thread safety: a Text belongs to one thread; write_all may be called from any.
// Invariants: 1. nothing here allocates, so printing never disturbs the allocator under test.
//             2. a Text never overflows: what does not fit sets `truncated()`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark {

class Text {
 public:
  // Longest line of the protocol: a path of 4 KiB, escaped, and thirty metrics still fit.
  static constexpr std::size_t kCapacityBytes = 16384;

  Text& add(std::string_view part);
  Text& add_unsigned(std::uint64_t value);
  Text& add_hex16(std::uint64_t value);
  // A JSON number with at most six decimals. `value` must be finite and below 2^63 in magnitude.
  Text& add_number(double value);
  // Quoted and escaped as JSON wants it; bytes are taken for UTF-8.
  Text& add_json_string(std::string_view value);

  std::string_view view() const { return {bytes_, used_}; }
  bool truncated() const { return truncated_; }
  void clear() {
    used_ = 0;
    truncated_ = false;
  }

 private:
  void add_byte(char byte);

  char bytes_[kCapacityBytes];
  std::size_t used_ = 0;
  bool truncated_ = false;
};

// Writes all of `bytes` to `descriptor`, also in pieces and after signals. False: errno says why.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace tidemark
