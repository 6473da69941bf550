// Giving the memory of the slice table back: 128 bytes for each slice that was ever used, of no use while the slice is
// inside a free span without memory.
//
// What stands inside a free span is stale, and zero is as good: an entry that was never used looks like that. So the OS
// pages of the table that hold nothing but entries inside one clean free span may go. A span is in kTableList from a
// purge on that it was part of until it has been looked at; what is left of it when a part is taken stays there.
//
//   one look:  take the span out of the free memory (kPurging), unlock, call the OS, lock, put it back, in no list
//
// Nobody can take the span meanwhile. The look holds g_purge_step_lock, as a purge step does, so a fork sees none half
// done. The entries of the span's first and last slice stay, as its neighbours read them. The ages of a clean span are
// zero anyway, so OS pages that hold nothing else go, too.
#include "arena/arena.h"
#include "base/bits.h"
#include "base/test_point.h"
#include "config/options.h"
#include "os/os.h"
#include "stats/counters.h"

namespace ebb {
namespace {

// A look gives back at most so much of the table, the entries of a gibibyte, so that whoever waits for it waits for
// well under a millisecond. A longer span is looked at in pieces, whose border tags stay.
constexpr uint32_t kEntriesAtATime = 2 * MiB / kPageStride;

// While memory is in use and freed, the table is looked at each time that so much has been purged: a system call for
// each free span must be worth it.
constexpr uint32_t kStaleMost = 512 * MiB >> kSliceShift;

// Gives the whole OS pages of [begin, end) back. What the OS refuses is stale still.
void purge_pages_within(void* begin, void* end) {
  uintptr_t first = align_up(reinterpret_cast<uintptr_t>(begin), os::page_bytes());
  uintptr_t last = align_down(reinterpret_cast<uintptr_t>(end), os::page_bytes());
  if (first >= last) return;
  bool returned = os::purge(reinterpret_cast<void*>(first), last - first);
  count(returned ? Counter::k_purges : Counter::k_purges_refused);
}

}  // namespace

// Takes a listed span out of the free memory, or the next piece of a long one.
bool Arena::next_table_run_locked(Step* run) {
  Slice* span = purge_lists_[kTableList];
  if (span == nullptr) return false;
  uint32_t begin = index_of(span), end = begin + span->slices;
  bool goes_on = table_span_ == begin && table_cursor_ > begin && table_cursor_ < end;
  run->first = goes_on ? table_cursor_ : begin;
  run->slices = min_of(end - run->first, kEntriesAtATime);
  table_span_ = begin;
  table_cursor_ = run->first + run->slices;
  cut_locked(span, run->first, run->slices);
  // What is in front of the last piece has been looked at.
  if (table_cursor_ == end && run->first != begin) unlist_table_locked(slice_at(table_, begin));
  tag_locked(slice_at(table_, run->first), run->slices, SliceKind::kPurging);
  return true;
}

void Arena::unlist_table_locked(Slice* span) {
  if (span->list != kTableList) return;
  unlink_purge_locked(span);
  span->list = kNoList;
}

// False when no span is listed.
bool Arena::return_table_step() {
  LockGuard step_guard(g_purge_step_lock);
  Step run;
  {
    LockGuard guard(lock_);
    if (!next_table_run_locked(&run)) return false;
  }
  EBB_TEST_POINT("table.before_os");
  purge_pages_within(slice_at(table_, run.first + 1), slice_at(table_, run.first + run.slices - 1));
  purge_pages_within(ages_ + run.first, ages_ + run.first + run.slices);
  EBB_TEST_POINT("table.after_os");
  LockGuard guard(lock_);
  give_locked(run.first, run.slices, false, kNoList);
  return true;
}

// At the end of a pass. `forced`: whatever it is worth. What an adopted range's own mapping reads as when it was given
// back is the program's affair, so its table stays.
void Arena::return_table(bool forced) {
  if (adopted_) return;
  {
    LockGuard guard(lock_);
    bool at_rest = purge_lists_[0] == nullptr && purge_lists_[1] == nullptr;
    if (!forced && !at_rest && stale_slices_ < kStaleMost) return;
    stale_slices_ = 0;
  }
  // Where huge pages are to stay whole, so are the table's.
  if (!forced && option(Option::k_thp) == word::thp_full) return;
  while (return_table_step()) EBB_TEST_POINT("table.between");
}

size_t Arena::resident_table_bytes() {
  size_t known = usage().table_bytes;
  if (known == 0) return 0;
  auto resident = [](uintptr_t begin, uintptr_t end) {
    begin = align_down(begin, os::page_bytes());
    return os::resident_bytes(reinterpret_cast<void*>(begin), end - begin);
  };
  size_t slices = known / (kPageStride + 1);
  uintptr_t entries = reinterpret_cast<uintptr_t>(table_) + size_t{low_} * kPageStride;
  uintptr_t ages = reinterpret_cast<uintptr_t>(ages_) + low_;
  size_t bytes = resident(entries, entries + slices * kPageStride) + resident(ages, ages + slices);
  // Where the OS does not tell, all that was used counts.
  return bytes != 0 ? bytes : known;
}

}  // namespace ebb
