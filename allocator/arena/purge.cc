// Giving free memory back to the OS, so that none is ever stranded.
//
// Each arena has two lists of free spans with dirty slices: *pending*, which the running pass has still to
// look at, and *fresh*, where every span that is freed meanwhile goes. The protocol:
//
//   pass:   disarm; fresh becomes pending (the pass *disarms before it reads*)
//           while pending is not empty: look at one span
//             a run of it is due       → take the run out (kPurging), unlock, call the OS, lock, put it back
//             dirty but not yet due    → to fresh, arm
//             nothing ever will be     → to kept
//   give(): dirty memory goes to fresh (or to pending when it joins a span there), arm
//
// *Kept* are spans that time alone does not change: what the OS has refused to take, and, where huge pages are to stay
// whole (option thp=full), parts of such pages. No pass looks at them, so that a process whose memory is locked comes to
// rest. They come back when something is freed beside them, with a forced purge, and what was refused by passes at
// doubling distances: those run when other memory is freed.
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
#include "config/options.h"
#include "stats/counters.h"

namespace ebb {

constinit Lock g_purge_step_lock{LockRank::kPurgeStep};

namespace {

// Generations run from 1 to kGenerations and around; 0 means clean. The two numbers above mark what the OS has refused
// to take: since it was last tried again, or before (Arena::refused_age_).
constexpr uint8_t kGenerations = 253;
static_assert(kGenerations < 254);
uint8_t generation_after(uint8_t generation) {
  return static_cast<uint8_t>(generation == kGenerations ? 1 : generation + 1);
}

// On the circle of generations, forwards: 0 to kGenerations - 1.
uint8_t generations_between(uint8_t from, uint8_t to) {
  return static_cast<uint8_t>(to >= from ? to - from : to + kGenerations - from);
}

constexpr uint32_t kHugeSlices = 2 * MiB >> kSliceShift;
static_assert(kPurgeStep.value % kHugeSlices == 0, "a step is made of whole huge pages");

// Passes until what was refused is tried again: one delay at first, half a minute at most.
constexpr uint32_t kFirstRetry = kPurgeAge, kLastRetry = 1024;

}  // namespace

constinit std::atomic<uint8_t> g_generation{1};
constinit std::atomic<uint8_t> g_purge_age{kPurgeAge};
constinit std::atomic<uint32_t> g_arm_threshold_slices{UINT32_MAX};
void (*g_arena_armed_hook)() = nullptr;

void announce_armed() {
  if (g_arena_armed_hook != nullptr) g_arena_armed_hook();
}

uint8_t begin_generation() {
  uint8_t now = g_generation.load(std::memory_order_relaxed);
  uint8_t next;
  do {
    next = generation_after(now);
  } while (!g_generation.compare_exchange_weak(now, next, std::memory_order_relaxed));
  return next;
}

// One behind the current one was stamped by a thread that is ahead of this one's view.
bool has_aged(uint8_t generation) {
  uint8_t now = current_generation();
  return generation != generation_after(now) &&
         generations_between(generation, now) >= g_purge_age.load(std::memory_order_relaxed);
}

bool Arena::is_due_locked(uint8_t age) const {
  if (age == 0) return false;
  if (age > kGenerations) return age != refused_age_;
  if (force_age_ != 0) {
    // What was stamped since the forced purge began lies in (force_age_, youngest]; all else is older, however old.
    uint8_t youngest = generation_after(current_generation());
    uint8_t behind = generations_between(force_age_, age);
    if (behind == 0 || behind > generations_between(force_age_, youngest)) return true;
  }
  return has_aged(age);
}

// Due one day, by the passing of time alone.
bool Arena::is_young_locked(uint8_t age) const { return age != 0 && age <= kGenerations && !is_due_locked(age); }

// The first run of due slices of the span in [begin, end), at most kPurgeStep long. `young` is set when there is none,
// but slices that will be due.
bool Arena::find_run_in_locked(uint32_t begin, uint32_t end, Step* step, bool* young) const {
  uint32_t i = begin;
  while (i < end && !is_due_locked(ages_[i])) {
    *young = *young || is_young_locked(ages_[i]);
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

// The same in whole huge pages: each is free, and all that is dirty in it is due.
bool Arena::find_huge_run_locked(uint32_t begin, uint32_t end, Step* step, bool* young) const {
  size_t skew = (reinterpret_cast<uintptr_t>(memory_) >> kSliceShift) % kHugeSlices;
  size_t at = align_up(begin + skew, kHugeSlices) - skew;
  step->slices = 0;
  for (; at + kHugeSlices <= end && step->slices < kPurgeStep.value; at += kHugeSlices) {
    bool dirty = false, waits = false, refused = false;
    for (size_t i = at; i < at + kHugeSlices; ++i) {
      dirty = dirty || ages_[i] != 0;
      waits = waits || is_young_locked(ages_[i]);
      refused = refused || (ages_[i] > kGenerations && !is_due_locked(ages_[i]));
    }
    bool due = dirty && !waits && !refused;
    if (!due && step->slices != 0) break;
    if (due && step->slices == 0) step->first = static_cast<uint32_t>(at);
    if (due) step->slices += kHugeSlices;
    *young = *young || (waits && !refused);
  }
  return step->slices != 0;
}

// The same of a whole span. Goes on behind the last run: a span is purged piece by piece, and its purged part
// joins it again in front.
bool Arena::find_run_locked(Slice* span, Step* step, bool* young) {
  uint32_t begin = index_of(span);
  uint32_t end = begin + span->slices;
  // A forced purge takes all that is free.
  bool in_huge_pages = option(Option::k_thp) == word::thp_full && !adopted_ && force_age_ == 0;
  if (in_huge_pages) return find_huge_run_locked(begin, end, step, young);
  uint32_t middle = purge_cursor_ > begin && purge_cursor_ < end ? purge_cursor_ : begin;
  if (!find_run_in_locked(middle, end, step, young) && !find_run_in_locked(begin, middle, step, young)) return false;
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
    bool young = false;
    if (find_run_locked(span, step, &young)) {
      dirty_ -= cut_locked(span, step->first, step->slices);
      tag_locked(slice_at(table_, step->first), step->slices, SliceKind::kPurging);
      memset(ages_ + step->first, 0, step->slices);
      return Look::kFound;
    }
    unlink_purge_locked(span);
    link_purge_locked(span, young ? pending_list_ ^ 1 : kKeptList);
  }
  return Look::kMore;
}

// All kept spans are looked at again, and what was refused is due.
void Arena::retry_kept_locked() {
  refused_age_ ^= 1;  // 254 and 255
  has_refused_ = false;
  while (Slice* span = purge_lists_[kKeptList]) {
    unlink_purge_locked(span);
    link_purge_locked(span, pending_list_ ^ 1);
  }
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
  bool arm = give_locked(step.first, step.slices, !returned, returned ? kTableList : kKeptList);
  if (returned) stale_slices_ += step.slices;
  // What the OS refused stays dirty, as it is not known to be zero, but is not due any more: this pass, which meets it
  // again when it joins a pending span, must not try it in a loop.
  if (!returned) memset(ages_ + step.first, refused_age_, step.slices);
  has_refused_ = has_refused_ || !returned;
  return arm;
}

// `purged` grows by what the step took in hand.
Arena::Look Arena::purge_step(uint32_t* purged) {
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
  *purged += step.slices;
  if (arm) announce_armed();
  return look;
}

bool Arena::purge_due() {
  if (pinned_) return false;
  {
    LockGuard guard(lock_);
    armed_ = false;
    if (has_refused_ && --passes_to_retry_ == 0) {
      retry_distance_ = min_of(2 * retry_distance_, kLastRetry);
      passes_to_retry_ = retry_distance_;
      retry_kept_locked();
    }
    // A pass that somebody else left unfinished is finished first; the next one takes the rest.
    if (purge_lists_[pending_list_] == nullptr) {
      pending_list_ ^= 1;
      ++passes_begun_;
    }
  }
  EBB_TEST_POINT("purge.disarmed");
  count(Counter::k_purge_passes);
  uint32_t purged = 0;
  while (purge_step(&purged) != Look::kDrained) {
    EBB_TEST_POINT("purge.between");
    return_table(false);
  }
  return_table(false);
  LockGuard guard(lock_);
  if (!has_refused_) retry_distance_ = passes_to_retry_ = kFirstRetry;
  armed_ = purge_lists_[0] != nullptr || purge_lists_[1] != nullptr;
  return armed_;
}

uint8_t begin_forced_purge() {
  uint8_t age = current_generation();
  begin_generation();  // what is freed from now on is not part of the call
  return age;
}

// From here on steps take what was stamped up to `age`; the latest does for all who are at it. Returns how many lists
// have to be begun until all of that has been looked at.
uint64_t Arena::begin_forcing_locked(uint8_t age) {
  if (forced_purges_++ == 0 || generations_between(force_age_, age) < kGenerations / 2) force_age_ = age;
  return passes_begun_ + 2;
}

void Arena::end_forcing_locked() {
  if (--forced_purges_ == 0) force_age_ = 0;
}

void Arena::purge_all(uint8_t age) {
  uint64_t target;
  {
    LockGuard guard(lock_);
    if (pinned_) return;
    retry_kept_locked();
    target = begin_forcing_locked(age);
  }
  uint32_t purged = 0;
  for (;;) {
    if (purge_step(&purged) != Look::kDrained) {
      return_table(false);
      continue;
    }
    EBB_TEST_POINT("purge.drained");
    // Another thread may have begun a list since, and have its last run in hand: an empty list counts when no
    // step is in flight.
    LockGuard step_guard(g_purge_step_lock);
    LockGuard guard(lock_);
    if (purge_lists_[pending_list_] != nullptr) continue;
    if (passes_begun_ >= target) break;
    pending_list_ ^= 1;
    ++passes_begun_;
  }
  {
    LockGuard guard(lock_);
    end_forcing_locked();
  }
  return_table(true);
}

void Arena::make_room(SliceCount slices) {
  if (option(Option::k_thp) == word::thp_full) return;  // what is free in pieces may be parts of huge pages
  uint64_t target;
  {
    LockGuard guard(lock_);
    target = begin_forcing_locked(current_generation());
  }
  uint32_t purged = 0;
  while (purged < slices.value) {
    if (purge_step(&purged) != Look::kDrained) continue;
    LockGuard guard(lock_);
    if (purge_lists_[pending_list_] != nullptr) continue;
    if (passes_begun_ >= target) break;
    pending_list_ ^= 1;
    ++passes_begun_;
  }
  LockGuard guard(lock_);
  end_forcing_locked();
}

}  // namespace ebb
