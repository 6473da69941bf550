// Waiting until the allocator has given back what it is going to give back.
//
// Called between a round's last free and its checkpoint, by one thread that calls no allocator meanwhile.
// A fixed time would catch a purge half-way whenever the machine is busy, and the figure would be noise.
#pragma once

#include <cstdint>

namespace tidemark {

// Decides from one look after the other whether a figure rests. Pure; belongs to one thread.
class SteadyWatch {
 public:
  // Looks in a row that must agree with the one before: longer, at settle's pace, than a purge thread waits for
  // a processor that others keep busy.
  static constexpr int kLooks = 5;
  // What agreeing means: less than one step of any purge.
  static constexpr std::uint64_t kBytes = 64 * 1024;

  // Takes the next look; true when the figure rests.
  bool see(std::uint64_t bytes);

 private:
  bool any_ = false;
  std::uint64_t last_bytes_ = 0;
  int agreed_ = 0;
};

// Zero does not wait at all. Else returns when at least `least_ms` have passed and the process's resident memory
// has been steady for a tenth of a second; after ten seconds in any case, because memory that never rests is a
// figure too.
void settle(std::uint64_t least_ms);

}  // namespace tidemark
