// Taking and giving spans: bins of free spans with boundary tags, warm memory first.
#include "arena/arena.h"

#include <cstring>

#include "base/bits.h"
#include "stats/counters.h"

namespace ebb {

namespace {

// Most spans are one slice long: not worth a call.
EBB_INLINE void set_ages(uint8_t* first, uint32_t slices, uint8_t age) {
  if (EBB_LIKELY(slices == 1)) {
    *first = age;
  } else {
    memset(first, age, slices);
  }
}

// Makes the memory from `*end` up to `needed` bytes behind `base` accessible and moves the end.
bool commit_up_to(char* base, size_t* end, size_t needed) {
  needed = align_up(needed, os::page_bytes());
  if (needed <= *end) return true;
  if (!os::commit(base + *end, needed - *end)) return false;
  *end = needed;
  return true;
}

bool is_first_of_used(SliceKind kind) {
  return kind == SliceKind::kPage || kind == SliceKind::kLarge || kind == SliceKind::kArena || kind == SliceKind::kMeta;
}

}  // namespace

void Arena::initialise(uint16_t id, const Range& range) {
  LockGuard guard(lock_);
  id_ = id;
  table_ = range.table;
  memory_ = range.memory;
  ages_ = range.ages;
  low_ = top_ = range.low;
  high_ = range.high;
  pinned_ = range.pinned;
  adopted_ = range.adopted;
  nested_ = range.nested;
  committed_ = range.committed ? range.high : range.low;
  table_end_ = align_down(size_t{low_} * kPageStride, os::page_bytes());
  ages_end_ = align_down(low_, os::page_bytes());
  if (range.committed && !range.zero) {
    // Everything begins as one free span of unknown contents; pinned memory is never purged.
    memset(ages_ + low_, current_generation(), high_ - low_);
    top_ = high_;
    dirty_ = high_ - low_;
    insert_free_locked(low_, high_ - low_, high_ - low_, pending_list_ ^ 1);
  }
}

bool Arena::withdraw() {
  LockGuard guard(lock_);
  if (used_ != 0) return false;
  group_.store(this, std::memory_order_relaxed);  // nobody's
  low_ = high_ = top_ = committed_ = dirty_ = 0;
  armed_ = false;
  for (Slice*& list : purge_lists_) list = nullptr;
  bins_ = SpanBins();
  return true;
}

Arena::Range Arena::inside(Slice* span, SliceCount margin) {
  if (span->dirty != 0) clear_ages(span);
  uint32_t first = index_of(span);
  return {table_, memory_, ages_, first + margin.value, first + span->slices - margin.value, true, true, false, true, adopted_};
}

EBB_INLINE Slice* Arena::take_locked(uint32_t slices, size_t alignment) {
  uint32_t dirty;
  Slice* span = find_locked(slices, alignment, &dirty);
  if (span == nullptr && grow_locked(slices, alignment)) span = find_locked(slices, alignment, &dirty);
  if (EBB_UNLIKELY(span == nullptr)) return nullptr;
  claim_memory_locked(slices, dirty);
  span->start = memory_ + (size_t{index_of(span)} << kSliceShift);
  span->dirty = dirty;
  span->arena_id = id_;
  tag_locked(span, slices, SliceKind::kUsed);
  return span;
}

EBB_FLATTEN Slice* Arena::take(SliceCount slices, size_t alignment, bool* zero) {
  Slice* span;
  uint32_t untouched;
  bool crowded;
  {
    LockGuard guard(lock_);
    span = take_locked(slices.value, alignment);
    if (EBB_UNLIKELY(span == nullptr)) return nullptr;
    untouched = slices.value - span->dirty;
    crowded = untouched >= kRoomFrom.value && dirty_ != 0 && !pinned_;
  }
  // Memory that was free in pieces too short for this request goes first: the process, which may be at a limit, would
  // have both otherwise. It costs less than touching the new memory will.
  if (EBB_UNLIKELY(crowded)) make_room({untouched});
  if (zero != nullptr) *zero = span->dirty == 0;
  return span;
}

Slice* Arena::take_waiting(SliceCount slices, size_t alignment, bool* zero) {
  LockGuard step(g_purge_step_lock);
  LockGuard guard(lock_);
  Slice* span = take_locked(slices.value, alignment);
  if (span != nullptr && zero != nullptr) *zero = span->dirty == 0;
  return span;
}

// Slices that were cut out of a free span are in use. Their ages stay: when they are given back, they get new ones.
void Arena::claim_memory_locked(uint32_t slices, uint32_t dirty) {
  dirty_ -= dirty;
  used_ += slices;
}

uint32_t Arena::count_dirty_locked(uint32_t first, uint32_t slices) const {
  // Eight ages at a time: a byte's top bit of (x | (x & 0x7F…) + 0x7F…) is set exactly when it is not zero.
  constexpr uint64_t kLow = 0x7F7F7F7F7F7F7F7F;
  const uint8_t* at = ages_ + first;
  const uint8_t* end = at + slices;
  uint32_t dirty = 0;
  for (; end - at >= 8; at += 8) {
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    // Runs are mostly all clean or all dirty; the sum of the top bits is their number.
    uint64_t marks = ((word | ((word & kLow) + kLow)) & ~kLow) >> 7;
    dirty += static_cast<uint32_t>((marks * 0x0101010101010101u) >> 56);
  }
  for (; at < end; ++at) dirty += *at != 0;
  return dirty;
}

// The number of dirty slices among [first, +slices) of a free span; counts only where the span is mixed.
uint32_t Arena::dirty_part_locked(const Slice* span, uint32_t first, uint32_t slices) const {
  if (span->dirty == 0) return 0;
  return span->dirty == span->slices ? slices : count_dirty_locked(first, slices);
}

// Writes the boundary tags.
void Arena::tag_locked(Slice* span, uint32_t slices, SliceKind kind) {
  span->kind = kind;
  span->slices = slices;
  if (slices > 1) {
    Slice* last = slice_after(span, slices - 1);
    last->kind = kind == SliceKind::kUsed ? SliceKind::kUsedTail : kind;
    last->slices = slices;
  }
}

// The index of the first slice at or behind `first` whose memory is aligned.
uint32_t Arena::align_index(uint32_t first, size_t alignment) const {
  if (alignment <= kSliceBytes) return first;
  uintptr_t start = reinterpret_cast<uintptr_t>(memory_) + (uintptr_t{first} << kSliceShift);
  uintptr_t skip = (align_up(start, alignment) - start) >> kSliceShift;
  return skip < high_ - first ? first + static_cast<uint32_t>(skip) : high_;
}

// A free span with an aligned run in it, or null.
EBB_INLINE Slice* Arena::find_aligned_locked(uint32_t slices, size_t alignment, SpanBins::Tier tier) const {
  if (EBB_LIKELY(alignment <= kSliceBytes)) return bins_.find(slices, tier);
  // One that is just long enough was such a run before, most likely.
  Slice* span = bins_.find(slices, tier);
  if (span == nullptr) return nullptr;
  uint32_t skipped = align_index(index_of(span), alignment) - index_of(span);
  if (skipped + slices <= span->slices) return span;
  return bins_.find(slices + static_cast<uint32_t>((alignment >> kSliceShift) - 1), tier);
}

// Cuts an aligned run out of a free span, warm ones first; null when no span is long enough.
Slice* Arena::find_locked(uint32_t slices, size_t alignment, uint32_t* dirty) {
  size_t slack = alignment > kSliceBytes ? (alignment >> kSliceShift) - 1 : 0;
  if (slices + slack > high_ - low_) return nullptr;
  for (SpanBins::Tier tier : {SpanBins::kWarm, SpanBins::kCold}) {
    Slice* span = find_aligned_locked(slices, alignment, tier);
    if (span == nullptr) continue;
    uint32_t first = align_index(index_of(span), alignment);
    *dirty = cut_locked(span, first, slices);
    return slice_at(table_, first);
  }
  return nullptr;
}

// Takes [first, +slices) out of a free span; what lies before and behind stays free. Returns how many of the
// slices are dirty. Counts no more slices than it takes, and those before: spans can be long.
uint32_t Arena::cut_locked(Slice* span, uint32_t first, uint32_t slices) {
  uint32_t begin = index_of(span);
  uint32_t end = begin + span->slices;
  uint32_t dirty = span->dirty;
  uint8_t list = span->list;
  remove_free_locked(span);
  uint32_t before = dirty_part_locked(span, begin, first - begin);
  uint32_t taken = dirty_part_locked(span, first, slices);
  if (begin < first) insert_free_locked(begin, first - begin, before, list);
  if (first + slices < end) insert_free_locked(first + slices, end - first - slices, dirty - before - taken, list);
  return taken;
}

// Adds never-used slices to the free ones, so that an aligned run fits at the end; those join a free span
// that ends there, so a growing program reuses what it just gave back.
EBB_COLD bool Arena::grow_locked(uint32_t slices, size_t alignment) {
  uint32_t first = top_;
  if (top_ > low_ && slice_at(table_, top_ - 1)->kind == SliceKind::kFree) {
    first = top_ - slice_at(table_, top_ - 1)->slices;
  }
  // As much as find_locked asks for, whatever the alignment of `first`.
  size_t slack = alignment > kSliceBytes ? (alignment >> kSliceShift) - 1 : 0;
  if (slices + slack > high_ - first) return false;
  return raise_top_locked(first + slices + static_cast<uint32_t>(slack));
}

bool Arena::raise_top_locked(uint32_t top) {
  if (top > committed_ && !commit_locked(top)) return false;
  uint32_t old_top = top_;
  top_ = top;
  give_locked(old_top, top - old_top, false, kNoList);
  return true;
}

// Makes slices below `top` and their metadata accessible, and some more: calls are few, and what is made
// accessible stays in proportion to what is used (locked memory becomes resident at once, and strict
// overcommit charges it).
bool Arena::commit_locked(uint32_t top) {
  constexpr uint32_t kLeast = 4 * MiB >> kSliceShift, kMost = 64 * MiB >> kSliceShift;
  uint32_t ahead = min_of(max_of((committed_ - low_) / 8, kLeast), kMost);
  uint32_t wanted = min_of(high_, max_of(top, committed_ + ahead));
  for (;;) {
    // One entry more than there are slices: the neighbour of the last one is looked at.
    size_t memory_end = size_t{committed_} << kSliceShift;
    if (commit_up_to(table_, &table_end_, (size_t{wanted} + 1) * kPageStride) &&
        commit_up_to(reinterpret_cast<char*>(ages_), &ages_end_, wanted) &&
        commit_up_to(memory_, &memory_end, size_t{wanted} << kSliceShift)) {
      count(Counter::k_commits);
      committed_ = wanted;
      return true;
    }
    if (wanted == top) return false;
    wanted = top;
  }
}

// Puts a free span, which has no free neighbour, into the lists. A clean one, for which `list` is not kNoList, is
// listed for its table when it is long enough.
void Arena::insert_free_locked(uint32_t first, uint32_t slices, uint32_t dirty, uint8_t list) {
  Slice* span = slice_at(table_, first);
  span->dirty = dirty;
  tag_locked(span, slices, SliceKind::kFree);
  bins_.insert(span, dirty != 0 ? SpanBins::kWarm : SpanBins::kCold);
  if (dirty != 0) return link_purge_locked(span, list);
  // A shorter one fills no OS page of the table.
  constexpr uint32_t kLeast = 4 * KiB / kPageStride + 2;
  if (list != kNoList && slices >= kLeast) return link_purge_locked(span, kTableList);
  span->list = kNoList;
}

void Arena::remove_free_locked(Slice* span) {
  EBB_ASSERT(span->kind == SliceKind::kFree);
  bins_.remove(span);
  if (span->list != kNoList) unlink_purge_locked(span);
  span->kind = SliceKind::kNone;
}

// Frees [first, +slices), joined with free neighbours. Returns whether the arena has just been armed. `list`, of dirty
// ones: the fresh list, or kKeptList when the OS has just refused them, so that there is nothing to arm for; of clean
// ones: kTableList, or kNoList when their entries in the table hold no memory.
bool Arena::give_locked(uint32_t first, uint32_t slices, bool dirty, uint8_t list) {
  bool refused = list == kKeptList;
  uint8_t clean_list = list;
  if (!dirty) list = pending_list_ ^ 1;
  uint32_t span_dirty = dirty ? slices : 0;
  if (dirty) set_ages(ages_ + first, slices, current_generation());
  dirty_ += span_dirty;
  slice_at(table_, first)->kind = SliceKind::kNone;
  slice_at(table_, first + slices - 1)->kind = SliceKind::kNone;
  auto join = [&](Slice* neighbour) {
    // What a pass has still to look at stays in its list when it grows, and nothing that waits for one becomes kept.
    if (neighbour->dirty != 0 && list != pending_list_ && neighbour->list != kKeptList) list = neighbour->list;
    clean_list = min_of(clean_list, neighbour->list);
    span_dirty += neighbour->dirty;
    slices += neighbour->slices;
    remove_free_locked(neighbour);
  };
  if (first > low_) {
    Slice* last = slice_at(table_, first - 1);
    if (last->kind == SliceKind::kFree) {
      first -= last->slices;
      join(slice_at(table_, first));
    }
  }
  if (first + slices < top_) {
    Slice* right = slice_at(table_, first + slices);
    if (right->kind == SliceKind::kFree) join(right);
  }
  insert_free_locked(first, slices, span_dirty, span_dirty != 0 ? list : clean_list);
  bool arm = dirty && !refused && !armed_ && !pinned_ && dirty_ >= g_arm_threshold_slices.load(std::memory_order_relaxed);
  armed_ = armed_ || arm;
  return arm;
}

EBB_FLATTEN void Arena::give(Slice* span) {
  bool arm;
  {
    LockGuard guard(lock_);
    used_ -= span->slices;
    arm = give_locked(index_of(span), span->slices, true, fresh_list());
  }
  if (arm) announce_armed();
}

void Arena::give_clean(Slice* span) {
  LockGuard guard(lock_);
  used_ -= span->slices;
  if (span->dirty != 0) clear_ages(span);
  give_locked(index_of(span), span->slices, false, kTableList);
}

void Arena::give_run(Slice* first, SliceCount slices) {
  bool arm;
  {
    LockGuard guard(lock_);
    used_ -= slices.value;
    arm = give_locked(index_of(first), slices.value, true, fresh_list());
  }
  if (arm) announce_armed();
}

void Arena::give_tail(Slice* span, SliceCount keep) {
  bool arm;
  {
    LockGuard guard(lock_);
    uint32_t tail = span->slices - keep.value;
    retag_locked(span, keep.value);
    used_ -= tail;
    arm = give_locked(index_of(span) + keep.value, tail, true, fresh_list());
  }
  if (arm) announce_armed();
}

// Changes the length of a span in use.
void Arena::retag_locked(Slice* span, uint32_t slices) {
  SliceKind kind = span->kind;
  tag_locked(span, slices, SliceKind::kUsed);
  span->kind = kind;
}

bool Arena::extend(Slice* span, SliceCount slices) {
  LockGuard guard(lock_);
  uint32_t more = slices.value - span->slices;
  uint32_t end = index_of(span) + span->slices;
  if (more > high_ - end) return false;
  uint32_t free_end = end;
  if (end < top_ && slice_at(table_, end)->kind == SliceKind::kFree) free_end += slice_at(table_, end)->slices;
  if (free_end - end < more && (free_end != top_ || !raise_top_locked(end + more))) return false;
  uint32_t dirty = cut_locked(slice_at(table_, end), end, more);
  claim_memory_locked(more, dirty);
  span->dirty += dirty;
  retag_locked(span, slices.value);
  return true;
}

Arena::Usage Arena::usage() {
  LockGuard guard(lock_);
  Usage usage{};
  usage.used_bytes = size_t{used_} << kSliceShift;
  usage.dirty_bytes = size_t{dirty_} << kSliceShift;
  if (nested_) return usage;
  usage.reserved_bytes = size_t{high_ - low_} << kSliceShift;
  usage.committed_bytes = size_t{committed_ - low_} << kSliceShift;
  usage.table_bytes = size_t{top_ - low_} * (kPageStride + 1);
  return usage;
}

Slice* Arena::span_holding(const void* p) const {
  Slice* slice = slice_holding(p);
  if (slice == nullptr) return nullptr;
  // What stands inside a large block's entries is stale, so the way is back to the first that is a span's.
  const Slice* lowest = slice_at(table_, low_);
  for (uint32_t distance = 0;; ++distance, slice = slice_before(slice, 1)) {
    SliceKind kind = slice->kind;
    if (kind == SliceKind::kPage || kind == SliceKind::kLarge) return distance < slice->slices ? slice : nullptr;
    if (kind == SliceKind::kMeta || kind == SliceKind::kArena || slice == lowest) return nullptr;
  }
}

bool Arena::is_valid() {
  LockGuard guard(lock_);
  uint32_t used = 0, dirty = 0;
  bool before_free = false;
  for (uint32_t i = low_; i < top_;) {
    Slice* span = slice_at(table_, i);
    if (span->slices == 0 || span->slices > top_ - i) return false;
    bool is_free = span->kind == SliceKind::kFree;
    // An arena within accounts for its slices itself.
    uint32_t span_dirty = span->kind == SliceKind::kArena ? 0 : count_dirty_locked(i, span->slices);
    if (is_free && (before_free || span->dirty != span_dirty)) return false;
    if (is_free && (span->dirty != 0) != (span->list <= kKeptList)) return false;
    if (!is_free && span->dirty == 0 && span_dirty != 0) return false;
    for (uint32_t inside = is_free ? 0 : 1; inside < span->slices && span->kind != SliceKind::kArena; ++inside) {
      if (is_first_of_used(slice_after(span, inside)->kind)) return false;
    }
    if (!is_free && span->kind != SliceKind::kPurging) used += span->slices;
    if (is_free) dirty += span_dirty;
    before_free = is_free;
    i += span->slices;
  }
  return used == used_ && dirty == dirty_ && top_ <= committed_;
}

}  // namespace ebb
