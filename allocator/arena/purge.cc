// Giving free memory back to the OS, so that none is ever stranded.
//
// Each arena has two lists of free spans with dirty slices: *pending*, which the running pass has still to
// look at, and *fresh*, where every span that is freed meanwhile goes. The protocol:
//
//   pass:   disarm; fresh becomes pending (the pass *disarms before it reads*)
//           while pending is not empty: look at one span
//             a run of it is due       → take the run out (kPurging), unlock, call the OS, lock, put it back
//             dirty but not yet due    → to fresh, arm
//   give(): dirty memory goes to fresh (or to pending when it joins a span there), arm
//
// Invariants:
//  1. A span with a dirty slice is in exactly one of the lists, or the slice is in a kPurging run of a step.
//  2. fresh is not empty and the arena holds at least g_arm_threshold_slices of dirty memory ⇒ it is armed, or
//     a pass is running, which arms at its end.
//  3. armed ⇒ a later pass: the arming told the scavenger, or the pass that armed returns true to it.
// So what is freed behind a pass is found by the next one, and nobody needs to be quiet for that.
//
// A forced purge sets `force_age_`: from then on everybody's step takes all that was stamped up to it, until the
// last of those who force is done. After two drained lists (the one that was pending and the one that was fresh),
// seen while no step is in flight, all that was free at the call is with the OS, whoever did the work.
//
// tests/models/purge.pml is this protocol with all its interleavings.
#include <cstring>

#include "arena/arena.h"
#include "base/bits.h"
#include "base/test_point.h"
#include "stats/counters.h"

namespace ebb {

constinit Lock g_purge_step_lock{LockRank::kPurgeStep};

namespace {

// Generations run from 1 to 255 and around; 0 means clean.
constinit std::atomic<uint8_t> g_generation{1};

uint8_t generation_after(uint8_t generation) { return static_cast<uint8_t>(generation == 255 ? 1 : generation + 1); }

// On the circle of generations, forwards: 0 to 254.
uint8_t generations_between(uint8_t from, uint8_t to) {
  return static_cast<uint8_t>(to >= from ? to - from : to + 255 - from);
}

}  // namespace

constinit std::atomic<uint8_t> g_purge_age{kPurgeAge};
constinit std::atomic<uint32_t> g_arm_threshold_slices{UINT32_MAX};
void (*g_arena_armed_hook)() = nullptr;

void announce_armed() {
  if (g_arena_armed_hook != nullptr) g_arena_armed_hook();
}

uint8_t current_generation() { return g_generation.load(std::memory_order_relaxed); }

uint8_t begin_generation() {
  uint8_t now = g_generation.load(std::memory_order_relaxed);
  uint8_t next;
  do {
    next = generation_after(now);
  } while (!g_generation.compare_exchange_weak(now, next, std::memory_order_relaxed));
  return next;
}

void Arena::link_purge_locked(Slice* span, uint8_t list) {
  span->list = list;
  Slice*& head = purge_lists_[list];
  span->ring_prev = nullptr;
  span->ring_next = head;
  if (head != nullptr) head->ring_prev = span;
  head = span;
}

void Arena::unlink_purge_locked(Slice* span) {
  if (span->ring_next != nullptr) span->ring_next->ring_prev = span->ring_prev;
  if (span->ring_prev != nullptr) {
    span->ring_prev->ring_next = span->ring_next;
  } else {
    purge_lists_[span->list] = span->ring_next;
  }
}

bool Arena::is_due_locked(uint8_t age) const {
  if (age == 0) return false;
  uint8_t now = current_generation();
  uint8_t youngest = generation_after(now);
  if (force_age_ != 0) {
    // What was stamped since the forced purge began lies in (force_age_, youngest]; all else is older, however old.
    uint8_t behind = generations_between(force_age_, age);
    if (behind == 0 || behind > generations_between(force_age_, youngest)) return true;
  }
  return age != youngest && generations_between(age, now) >= g_purge_age.load(std::memory_order_relaxed);
}

// The first run of due slices of the span in [begin, end), at most kPurgeStep long.
bool Arena::find_run_in_locked(uint32_t begin, uint32_t end, Step* step) const {
  uint32_t i = begin;
  while (i < end && !is_due_locked(ages_[i])) {
    // Clean stretches are long: eight slices at a time.
    uint64_t word = 1;
    if (end - i >= 8) memcpy(&word, ages_ + i, sizeof(word));
    i += word == 0 ? 8 : 1;
  }
  if (i == end) return false;
  step->first = i;
  while (i < end && i - step->first < kPurgeStep.value && is_due_locked(ages_[i])) ++i;
  step->slices = i - step->first;
  return true;
}

// The same of a whole span. Goes on behind the last run: a span is purged piece by piece, and its purged part
// joins it again in front.
bool Arena::find_run_locked(Slice* span, Step* step) {
  uint32_t begin = index_of(span);
  uint32_t end = begin + span->slices;
  uint32_t middle = purge_cursor_ > begin && purge_cursor_ < end ? purge_cursor_ : begin;
  if (!find_run_in_locked(middle, end, step) && !find_run_in_locked(begin, middle, step)) return false;
  purge_cursor_ = step->first + step->slices;
  return true;
}

// Looks at pending spans until one has something due, which is taken out of the free memory. Looks at no more
// than kLooks spans at a time, so that the lock is held briefly.
Arena::Look Arena::next_step_locked(Step* step) {
  constexpr int kLooks = 64;
  for (int i = 0; i < kLooks; ++i) {
    Slice* span = purge_lists_[pending_list_];
    if (span == nullptr) return Look::kDrained;
    if (find_run_locked(span, step)) {
      cut_locked(span, step->first, step->slices);
      tag_locked(slice_at(table_, step->first), step->slices, SliceKind::kPurging);
      memset(ages_ + step->first, 0, step->slices);
      dirty_ -= step->slices;
      return Look::kFound;
    }
    unlink_purge_locked(span);
    link_purge_locked(span, pending_list_ ^ 1);
  }
  return Look::kMore;
}

// Calls the OS without the arena's lock and puts the run back. Returns whether that armed the arena.
bool Arena::run_step(const Step& step) {
  char* start = memory_ + (size_t{step.first} << kSliceShift);
  size_t bytes = size_t{step.slices} << kSliceShift;
  EBB_TEST_POINT("purge.before_os");
  bool returned = os::purge(start, bytes);
  EBB_TEST_POINT("purge.after_os");
  if (returned) {
    count(Counter::k_purges);
    count(Counter::k_purged_bytes, bytes);
  } else {
    count(Counter::k_purges_refused);
  }
  LockGuard guard(lock_);
  bool arm = give_locked(step.first, step.slices, !returned);
  // What the OS refused stays dirty, as it is not known to be zero, and counts as freed in the generation to come:
  // this pass, which meets it again when it joins a pending span, must not try it in a loop, whatever the delay.
  if (!returned) memset(ages_ + step.first, generation_after(current_generation()), step.slices);
  return arm;
}

Arena::Look Arena::purge_step() {
  Step step;
  Look look;
  bool arm = false;
  {
    LockGuard step_guard(g_purge_step_lock);
    {
      LockGuard guard(lock_);
      look = next_step_locked(&step);
    }
    if (look == Look::kFound) arm = run_step(step);
  }
  if (arm) announce_armed();
  return look;
}

bool Arena::purge_due() {
  if (pinned_) return false;
  {
    LockGuard guard(lock_);
    armed_ = false;
    // A pass that somebody else left unfinished is finished first; the next one takes the rest.
    if (purge_lists_[pending_list_] == nullptr) {
      pending_list_ ^= 1;
      ++passes_begun_;
    }
  }
  EBB_TEST_POINT("purge.disarmed");
  count(Counter::k_purge_passes);
  while (purge_step() != Look::kDrained) EBB_TEST_POINT("purge.between");
  LockGuard guard(lock_);
  armed_ = purge_lists_[0] != nullptr || purge_lists_[1] != nullptr;
  return armed_;
}

uint8_t begin_forced_purge() {
  uint8_t age = begin_generation();  // what was refused in the one before counts as freed in this
  begin_generation();                // what is freed from now on is not part of the call
  return age;
}

void Arena::purge_all(uint8_t age) {
  uint64_t target;
  {
    LockGuard guard(lock_);
    if (pinned_) return;
    // The latest age of those who are at it does for all of them.
    if (forced_purges_++ == 0 || generations_between(force_age_, age) < 128) force_age_ = age;
    target = passes_begun_ + 2;
  }
  for (;;) {
    if (purge_step() != Look::kDrained) continue;
    EBB_TEST_POINT("purge.drained");
    // Another thread may have begun a list since, and have its last run in hand: an empty list counts when no
    // step is in flight.
    LockGuard step_guard(g_purge_step_lock);
    LockGuard guard(lock_);
    if (purge_lists_[pending_list_] != nullptr) continue;
    if (passes_begun_ >= target) {
      if (--forced_purges_ == 0) force_age_ = 0;
      return;
    }
    pending_list_ ^= 1;
    ++passes_begun_;
  }
}

}  // namespace ebb
