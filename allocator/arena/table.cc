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
// done. The entries of the span's first and last slice stay, as its neighbours read them, and a look writes to no
// others: the table of a terabyte that was one block was never touched. The ages of a clean span are zero anyway, so OS
// pages that hold nothing else go, too.
//
// A look returns what has become stale since the last one, however long the span: a mebibyte or two, so whoever waits
// for it waits for well under a millisecond.
#include "arena/arena.h"
#include "base/bits.h"
#include "base/test_point.h"
#include "config/options.h"
#include "os/os.h"
#include "stats/counters.h"

namespace ebb {
namespace {

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

// False when no span is listed.
bool Arena::return_table_step() {
  LockGuard step_guard(g_purge_step_lock);
  uint32_t first, slices;
  {
    LockGuard guard(lock_);
    Slice* span = purge_lists_[kTableList];
    if (span == nullptr) return false;
    first = index_of(span);
    slices = span->slices;
    remove_free_locked(span);
    tag_locked(span, slices, SliceKind::kPurging);
  }
  EBB_TEST_POINT("table.before_os");
  purge_pages_within(slice_at(table_, first + 1), slice_at(table_, first + slices - 1));
  purge_pages_within(ages_ + first, ages_ + first + slices);
  EBB_TEST_POINT("table.after_os");
  LockGuard guard(lock_);
  give_locked(first, slices, false, kNoList);
  return true;
}

// Behind each step and at the end of a pass. `forced`: whatever it is worth. What the mapping of an adopted range reads
// as when it was given back is the program's affair, so its table stays.
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
