// Drives one arena by random operations beside a model that is nothing but a few facts a slice, and compares them
// after each step. Used by the randomised tests, with a seeded generator, and by the fuzzer, with its input.
//
// The model knows for each slice: in use by which span; free and dirty since which generation; or clean. Contents are
// real: each span in use has bytes of its own at the ends of its OS pages, and memory that is said to be zero is read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "arena_range.h"

namespace ebb::test {

class ArenaMachine {
 public:
  // Gives a number below `bound`, which is at least 1.
  using Choose = std::function<uint32_t(uint32_t bound)>;

  ArenaMachine(uint32_t slices, uint32_t skew, Begins begins, Choose choose);
  ~ArenaMachine();

  // Does one operation and compares. False when arena and model differ: error() says how.
  bool step();
  const std::string& error() const { return error_; }

 private:
  // Whether the OS has refused to take a dirty slice; then it is due again only when refusals are tried again.
  enum class Refused : uint8_t { kNo, kYes, kTriedAgain };
  struct SliceFacts {
    bool used = false;
    uint64_t dirty_since = 0;  // generation; 0: clean
    Refused refused = Refused::kNo;
  };
  struct Span {
    uint32_t slices;
    uint32_t mark;  // what its memory holds
  };

  void take();
  void give();
  void give_tail();
  void extend();
  void new_generation();
  void purge_due();
  void purge_all();
  void retry_refused();
  void change_refusals();
  void change_purge_age();

  bool fail(const std::string& what);
  bool must_find(uint32_t slices, size_t alignment) const;
  void purged(bool all);
  void free_run(uint32_t first, uint32_t slices, bool dirty);
  void use_run(uint32_t first, uint32_t slices);
  void write_marks(uint32_t first, uint32_t slices, uint32_t mark);
  bool has_marks(uint32_t first, uint32_t slices, uint32_t mark) const;
  bool is_zero(uint32_t first, uint32_t slices) const;
  std::map<uint32_t, Span>::iterator any_span();
  bool compare();

  ArenaRange range_;
  Choose choose_;
  std::vector<SliceFacts> facts_;      // by index, from 0
  std::map<uint32_t, Span> spans_;     // in use, by first index
  uint64_t generation_ = 1;            // counts on where the arena's goes around
  uint64_t purge_age_ = kPurgeAge;
  // When passes try again what was refused; as in arena/purge.cc.
  static constexpr uint32_t kLastRetry = 1024;
  bool has_refused_ = false;
  uint32_t passes_to_retry_ = kPurgeAge, retry_distance_ = kPurgeAge;
  uint32_t next_mark_ = 1;
  std::string error_;
};

}  // namespace ebb::test
