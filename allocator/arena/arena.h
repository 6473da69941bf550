// An arena hands out spans of slices from one range of address space, takes them back, and gives the memory
// of free ones to the OS.
//
// Thread safety: every public call locks for some hundred instructions; no system call that touches memory
// contents runs under the lock. Spans belong to the caller between take() and give().
//
// Invariants (is_valid() checks them in debug builds and in fuzzers):
//  1. The spans below `top` tile the arena: each begins where the one before ends.
//  2. No two neighbouring spans are both kFree.
//  3. Slice i of a free span may hold memory exactly when age[i] != 0; the span's `dirty` is the number of these. The
//     ages of a span in use mean nothing, but where its `dirty` is 0 they are 0.
//  4. A free span with dirty != 0 is in the warm bins and in one purge list; another one is in the cold bins, and may be
//     in the list of those whose table is worth a look (arena/table.cc).
//  5. Only the first slice of such a span is kPage, kLarge, kArena or kMeta: what was one is something else before it
//     is inside or free.
//  6. A dirty slice has an armed arena, or a pass that will still look at it, or is kept (arena/purge.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "arena/slice.h"
#include "arena/span_bins.h"
#include "arena/span_source.h"
#include "base/relaxed.h"
#include "base/units.h"
#include "os/lock.h"

namespace ebb {

// Free memory ages by generations; it is due after this many. The scavenger begins a new generation every
// purge_delay / kPurgeAge, so memory goes back between 3/4 and 4/4 of the delay after it was freed.
constexpr uint8_t kPurgeAge = 4;
extern std::atomic<uint8_t> g_purge_age;  // kPurgeAge, or 0 for at once
uint8_t begin_generation();  // returns it
extern std::atomic<uint8_t> g_generation;
// Whether what was freed in this generation is due.
bool has_aged(uint8_t generation);
inline uint8_t current_generation() { return g_generation.load(std::memory_order_relaxed); }

// The age of a forced purge, which is one for all arenas: what is freed from now on is younger.
uint8_t begin_forced_purge();

// A request that gets so much untouched memory gives as much of what is dirty back first. Far above what programs
// replace in numbers: with 16 MiB, buffers of 8 to 40 MiB took twice the page faults.
constexpr SliceCount kRoomFrom{128 * MiB >> kSliceShift};

class Arena {
 public:
  constexpr Arena() : lock_(LockRank::kArena) {}

  // The arena serves slices [low, high) of `table`. `memory` is the start of slice 0's memory, `ages` holds a
  // byte a slice. `committed`: everything is already readable and writable (adopted memory); `zero`: and
  // known to be zero. Called before any other call.
  struct Range {
    char* table;
    char* memory;
    uint8_t* ages;
    uint32_t low, high;
    bool committed;
    bool zero;
    bool pinned;   // memory can't be given back
    bool nested = false;   // within a span of another arena, which accounts for the address space and the table
    bool adopted = false;  // the program's own mapping: never replaced by another
  };
  void initialise(uint16_t id, const Range& range);

  // The range of an arena within a span of this one, but for `margin` slices at each end, which keep this arena's
  // boundary tags. Committed, and taken to be zero.
  Range inside(Slice* span, SliceCount margin);

  // Forgets what an arena inside the span knew of its memory.
  void clear_ages(Slice* span) {
    memset(ages_ + index_of(span), 0, span->slices);
    span->dirty = 0;
  }

  // Empties the arena, whose range is somebody else's from now on; false when a span is in use. The caller holds
  // g_purge_step_lock. It may be initialised again.
  bool withdraw();

  // Takes a span of `slices` whose start is aligned to `alignment` bytes (a power of two). Null when the
  // range is used up or the OS refuses memory. `zero` (may be null) is set to whether the memory is known to
  // be zero. The span's kind is kUsed.
  Slice* take(SliceCount slices, size_t alignment, bool* zero);

  // The same where there is no other memory: waits for the purge step that may have some of it in hand.
  EBB_COLD Slice* take_waiting(SliceCount slices, size_t alignment, bool* zero);

  // Calls look(begin, end) for each part of a span's memory that is not known to be zero. The caller has just taken the
  // span, and has it to itself.
  template <class Look>
  void for_each_dirty_run(const Slice* span, Look look) const {
    const uint8_t* ages = ages_ + index_of(span);
    for (uint32_t begin = 0, left = span->dirty; left != 0;) {
      while (ages[begin] == 0) ++begin;
      uint32_t end = begin;
      while (left != 0 && ages[end] != 0) ++end, --left;
      look(span->start + (size_t{begin} << kSliceShift), span->start + (size_t{end} << kSliceShift));
      begin = end;
    }
  }

  // Gives a span back. Any thread. Its memory stays for reuse until it is purged.
  void give(Slice* span);

  // The same; `clean`: it has no memory any more and reads as zero.
  void give(Slice* span, bool clean) { clean ? give_clean(span) : give(span); }

  // Gives back `slices` slices from `first` on: spans in use that stand side by side, as one.
  void give_run(Slice* first, SliceCount slices);

  // Gives back all but the first `keep` slices.
  void give_tail(Slice* span, SliceCount keep);

  // Lengthens the span where it stands; false when its neighbour is not free.
  bool extend(Slice* span, SliceCount slices);

  // ---- purging (arena/purge.cc) ----

  // Gives everything that has been free for kPurgeAge generations back to the OS, step by step. Returns
  // whether dirty slices remain (the arena is armed again then).
  bool purge_due();
  // Returns when everything that was free when `age` was taken is with the OS, whoever purged it.
  void purge_all(uint8_t age);
  void purge_all() { purge_all(begin_forced_purge()); }
  // Gives `slices` free ones back, however long they have been free, or all that there are.
  EBB_COLD void make_room(SliceCount slices);

  struct Usage {
    size_t reserved_bytes;   // address space
    size_t committed_bytes;  // made accessible
    size_t used_bytes;       // spans in use
    size_t dirty_bytes;      // free, still resident
    size_t table_bytes;      // entries and ages up to the last slice that was handed out
  };
  Usage usage();

  // What is resident of table_bytes. A system call for each four mebibytes of table.
  size_t resident_table_bytes();

  uint16_t id() const { return id_; }

  // Whom it serves. Set before others see the arena.
  ArenaGroup group() const { return group_.load(std::memory_order_relaxed); }
  void set_group(ArenaGroup group) { group_.store(group, std::memory_order_relaxed); }

  // Whether its memory may be given back to the OS.
  bool may_purge() const { return !pinned_; }
  // Whether its memory may be replaced by fresh mappings, or moved to other places.
  bool may_remap() const { return !pinned_ && !adopted_; }

  // The memory of its first usable slice.
  const char* memory_start() const { return memory_ + (size_t{low_} << kSliceShift); }

  // Calls visit(span) for every span in use, under the lock: visit must be short and take no lock.
  template <class Visit>
  void for_each_used(Visit visit) {
    LockGuard guard(lock_);
    for (uint32_t i = low_; i < top_;) {
      Slice* span = slice_at(table_, i);
      if (span->kind != SliceKind::kFree && span->kind != SliceKind::kPurging) visit(span);
      i += span->slices;
    }
  }

  // Goes on behind `behind`, a span in use, or from the start when it is null, until found(span) is true. As above.
  template <class Found>
  void find_used(Slice* behind, Found found) {
    LockGuard guard(lock_);
    for (uint32_t i = behind == nullptr ? low_ : index_of(behind) + behind->slices; i < top_;) {
      Slice* span = slice_at(table_, i);
      if (span->kind != SliceKind::kFree && span->kind != SliceKind::kPurging && found(span)) return;
      i += span->slices;
    }
  }

  bool is_valid();

  // The entry of the slice at any address; null where none was handed out yet. The caller holds lookup_lock(), unless
  // the range of the arena stays.
  Slice* slice_holding(const void* p) const {
    uintptr_t index = (reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(memory_)) >> kSliceShift;
    return index - low_ < top_ - low_ ? slice_at(table_, index) : nullptr;
  }
  // The first slice of the page or large block around any address; null where none is. Steady only where the block is
  // live. As above.
  Slice* span_holding(const void* p) const;
  Lock& lookup_lock() { return lock_; }

  // fork: with this and g_purge_step_lock held no step is half done and the free spans are consistent. In the
  // child nobody has been told of the dirty memory yet, and whoever forced a purge is gone.
  void lock_for_fork() { lock_.lock(); }
  void unlock_after_fork(bool child) {
    if (child) {
      armed_ = false;
      force_age_ = 0;
      forced_purges_ = 0;
    }
    lock_.open_after_fork();
  }

  Arena* next = nullptr;  // list of all arenas, set once at registration

 private:
  uint32_t index_of(const Slice* slice) const {
    return static_cast<uint32_t>(static_cast<size_t>(reinterpret_cast<const char*>(slice) - table_) / kPageStride);
  }
  Slice* take_locked(uint32_t slices, size_t alignment);
  Slice* find_aligned_locked(uint32_t slices, size_t alignment, SpanBins::Tier tier) const;
  Slice* find_locked(uint32_t slices, size_t alignment, uint32_t* dirty);
  bool grow_locked(uint32_t slices, size_t alignment);
  bool raise_top_locked(uint32_t top);
  uint32_t align_index(uint32_t first, size_t alignment) const;
  bool commit_locked(uint32_t top);
  uint32_t cut_locked(Slice* span, uint32_t first, uint32_t slices);
  void tag_locked(Slice* span, uint32_t slices, SliceKind kind);
  void retag_locked(Slice* span, uint32_t slices);
  void insert_free_locked(uint32_t first, uint32_t slices, uint32_t dirty, uint8_t list);
  void remove_free_locked(Slice* span);
  bool give_locked(uint32_t first, uint32_t slices, bool dirty, uint8_t list);
  uint32_t count_dirty_locked(uint32_t first, uint32_t slices) const;
  uint32_t dirty_part_locked(const Slice* span, uint32_t first, uint32_t slices) const;
  void claim_memory_locked(uint32_t slices, uint32_t dirty);

  // purge.cc
  struct Step {
    uint32_t first = 0, slices = 0;
  };
  enum class Look { kFound, kMore, kDrained };
  Look next_step_locked(Step* step);
  Look purge_step(uint32_t* purged);
  uint64_t begin_forcing_locked(uint8_t age);
  void end_forcing_locked();
  bool find_run_locked(Slice* span, Step* step, bool* young);
  bool find_run_in_locked(uint32_t begin, uint32_t end, Step* step, bool* young) const;
  bool find_huge_run_locked(uint32_t begin, uint32_t end, Step* step, bool* young) const;
  bool is_due_locked(uint8_t age) const;
  bool is_young_locked(uint8_t age) const;
  void retry_kept_locked();
  bool run_step(const Step& step);

  EBB_COLD void give_clean(Slice* span);
  uint8_t fresh_list() const { return pending_list_ ^ 1; }

  // table.cc
  void return_table(bool forced);
  bool return_table_step();

  // Inline: every large block is linked and unlinked.
  void link_purge_locked(Slice* span, uint8_t list) {
    span->list = list;
    Slice*& head = purge_lists_[list];
    span->ring_prev = nullptr;
    span->ring_next = head;
    if (head != nullptr) head->ring_prev = span;
    head = span;
  }
  void unlink_purge_locked(Slice* span) {
    if (span->ring_next != nullptr) span->ring_next->ring_prev = span->ring_prev;
    if (span->ring_prev != nullptr) {
      span->ring_prev->ring_next = span->ring_next;
    } else {
      purge_lists_[span->list] = span->ring_next;
    }
  }

  Lock lock_;
  uint16_t id_ = 0;
  std::atomic<bool> pinned_{false};
  bool adopted_ = false;
  bool nested_ = false;
  std::atomic<ArenaGroup> group_{nullptr};
  bool armed_ = false;        // somebody was told that there is something to purge
  uint8_t pending_list_ = 0;  // the purge list that a pass still has to look at; the other takes new spans
  uint8_t force_age_ = 0;     // slices stamped up to this generation are due whatever their age; 0: none
  uint32_t forced_purges_ = 0;  // that are under way
  uint64_t passes_begun_ = 0;
  uint32_t purge_cursor_ = 0;  // where the last purged run ended
  uint8_t refused_age_ = 255;  // marks what the OS has refused to take since it was last tried again
  bool has_refused_ = false;   // some slices bear that mark
  uint32_t passes_to_retry_ = kPurgeAge, retry_distance_ = kPurgeAge;
  char* table_ = nullptr;
  char* memory_ = nullptr;
  uint8_t* ages_ = nullptr;
  uint32_t low_ = 0, high_ = 0;
  Relaxed<uint32_t> top_;   // slices from here on were never handed out
  uint32_t committed_ = 0;  // slices below are accessible
  size_t table_end_ = 0;    // bytes of the table, and of the ages, that are accessible; the part in front of
  size_t ages_end_ = 0;     // the first usable slice's entry never is
  uint32_t used_ = 0, dirty_ = 0;
  // Pending and fresh by turns, and kept; and of clean spans, those whose table is worth a look.
  static constexpr uint8_t kKeptList = 2, kTableList = 3, kNoList = 4;
  Slice* purge_lists_[4] = {nullptr, nullptr, nullptr, nullptr};
  uint32_t stale_slices_ = 0;  // purged since the table was last looked at
  SpanBins bins_;
};

// A step of the purge gives back at most this much, so that whoever waits for one (fork, a forced purge)
// waits for well under a millisecond.
constexpr SliceCount kPurgeStep{64};

// Held while a purge step calls the OS; fork takes it so that no child sees a half-done step.
extern Lock g_purge_step_lock;

// An arena is armed by the free that brings it to this much dirty memory; set by the scavenger, which starts
// its thread at the first arming.
extern std::atomic<uint32_t> g_arm_threshold_slices;

// Called when an arena has just been armed, with no lock of the arena layer held, but maybe inside a thread's
// slow path: it must neither allocate nor block. Set once by the scavenger.
extern void (*g_arena_armed_hook)();
void announce_armed();

}  // namespace ebb
