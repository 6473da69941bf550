// Holes: OS pages inside a page that holds live blocks, given back to the OS.
//
// A bit of `holes` stands for an OS page (or a few, in the longest pages) whose memory is gone. A block is *in a hole*
// when it overlaps one; it is on no list, and counted in `hole_blocks`. Filling takes the lowest hole away: every block
// that overlapped it and overlaps no other hole becomes free again. So blocks in holes are found by looking at one bit,
// never by a scan, and memory is touched an OS page at a time.
#include "arena/arena_list.h"
#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"
#include "page/page.h"
#include "stats/counters.h"

namespace ebb {
namespace {

constexpr uint32_t kMostBlocks = 4096;
constexpr uint32_t kMostOsPages = 128;
static_assert(kSliceBytes / kBlockAlign == kMostBlocks, "a page of the smallest blocks has the most");

// log2 of what one bit of `holes` stands for: an OS page, or several where the page has more than kMostOsPages.
unsigned hole_shift(const Page* page) {
  return max_of(floor_log2(os::page_bytes()), floor_log2((size_t{page->slices} << kSliceShift) / kMostOsPages));
}
static_assert(kLongestSlices % 8 == 0 && kLongSlices < 8, "the rounding above loses no part of a page");

bool hole_at(const Page* page, uint32_t os_page) { return page->holes[os_page / 64] >> (os_page % 64) & 1; }
void set_hole(Page* page, uint32_t os_page) { page->holes[os_page / 64] |= uint64_t{1} << (os_page % 64); }

// True when a block overlaps a hole.
bool in_hole(const Page* page, uint32_t block, unsigned os_shift) {
  size_t begin = size_t{block} * page->block_bytes;
  uint32_t last = static_cast<uint32_t>((begin + page->block_bytes - 1) >> os_shift);
  for (uint32_t os_page = static_cast<uint32_t>(begin >> os_shift); os_page <= last; ++os_page) {
    if (hole_at(page, os_page)) return true;
  }
  return false;
}

// A bit for each block that is free, of a page that the caller owns.
struct FreeMap {
  uint64_t bits[kMostBlocks / 64];
  bool test(uint32_t i) const { return bits[i / 64] >> (i % 64) & 1; }
  void set(uint32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }
};

void mark_free_blocks(const Page* page, FreeMap* map) {
  for (uint32_t word = 0; word <= page->capacity / 64u && word < kMostBlocks / 64; ++word) map->bits[word] = 0;
  for (Block* block = page->free; block != nullptr; block = block->next) {
    map->set(static_cast<uint32_t>(static_cast<size_t>(reinterpret_cast<char*>(block) - page->start) / page->block_bytes));
  }
}

}  // namespace

bool page_block_in_hole(const Page* page, uint32_t block) { return in_hole(page, block, hole_shift(page)); }

void page_fill_hole(Page* page) {
  unsigned os_shift = hole_shift(page);
  while (page->holes[0] != 0 || page->holes[1] != 0) {
    uint32_t os_page = page->holes[0] != 0 ? lowest_bit(page->holes[0]) : 64 + lowest_bit(page->holes[1]);
    page->holes[os_page / 64] &= ~(uint64_t{1} << (os_page % 64));
    size_t begin = size_t{os_page} << os_shift;
    uint32_t first = static_cast<uint32_t>(begin / page->block_bytes);
    uint32_t end = static_cast<uint32_t>(div_up(begin + (size_t{1} << os_shift), page->block_bytes));
    end = min_of<uint32_t>(end, page->carved);
    for (uint32_t i = end; i > first; --i) {
      if (in_hole(page, i - 1, os_shift)) continue;
      Block* block = reinterpret_cast<Block*>(page->start + size_t{i - 1} * page->block_bytes);
      block->next = page->free;
      page->free = block;
      --page->hole_blocks;
    }
    if (page->free != nullptr) return;
  }
}

namespace {

// A bit for each OS page that can be given back: it holds memory, and no block that overlaps it is live.
struct Wanted {
  uint64_t bits[kMostOsPages / 64] = {};
  bool any() const { return (bits[0] | bits[1]) != 0; }
  bool test(uint32_t i) const { return bits[i / 64] >> (i % 64) & 1; }
};

Wanted find_empty_os_pages(const Page* page, const FreeMap& map, unsigned os_shift) {
  Wanted wanted;
  size_t os_bytes = size_t{1} << os_shift;
  size_t bytes = size_t{page->slices} << kSliceShift;
  size_t carved_bytes = size_t{page->carved} * page->block_bytes;
  for (size_t at = 0; at < bytes; at += os_bytes) {
    uint32_t os_page = static_cast<uint32_t>(at >> os_shift);
    bool empty = at < carved_bytes ? !hole_at(page, os_page) : (page->flags & kFlagTailClean) == 0;
    // The next block to be carved begins in this OS page: it must not begin in a hole.
    if (at < carved_bytes && carved_bytes < at + os_bytes && page->carved < page->capacity) empty = false;
    uint32_t block = static_cast<uint32_t>(at / page->block_bytes);
    for (; empty && block < page->carved && size_t{block} * page->block_bytes < at + os_bytes; ++block) {
      empty = map.test(block) || in_hole(page, block, os_shift);
    }
    if (empty) wanted.bits[os_page / 64] |= uint64_t{1} << (os_page % 64);
  }
  return wanted;
}

// Links the free blocks that are in no hole, lowest first, and counts the others.
void relink_free_blocks(Page* page, const FreeMap& map, unsigned os_shift) {
  Block* last = nullptr;
  auto append = [&](Block* block) {
    if (last == nullptr) {
      page->free = block;
    } else {
      last->next = block;
    }
    last = block;
  };
  for (uint32_t i = 0; i < page->carved; ++i) {
    if (!map.test(i)) continue;
    if (in_hole(page, i, os_shift)) {
      ++page->hole_blocks;
      continue;
    }
    append(reinterpret_cast<Block*>(page->start + size_t{i} * page->block_bytes));
  }
  append(nullptr);
}

}  // namespace

size_t page_punch_holes(Page* page) {
  unsigned os_shift = hole_shift(page);
  FreeMap map;
  mark_free_blocks(page, &map);
  Wanted wanted = find_empty_os_pages(page, map, os_shift);
  if (!wanted.any()) return 0;
  // Off the list first: the links lie in the memory that is about to go. What the OS refuses to take stays
  // a hole in the books, so it is not tried again.
  uint32_t carved_pages = static_cast<uint32_t>((size_t{page->carved} * page->block_bytes + (size_t{1} << os_shift) - 1) >> os_shift);
  for (uint32_t i = 0; i < carved_pages; ++i) {
    if (wanted.test(i)) set_hole(page, i);
  }
  relink_free_blocks(page, map, os_shift);
  page->flags |= kFlagTailClean;
  size_t returned = 0;
  uint32_t os_pages = page->slices << (kSliceShift - os_shift);
  for (uint32_t i = 0; i < os_pages;) {
    uint32_t begin = i;
    while (i < os_pages && wanted.test(i)) ++i;
    if (i == begin) {
      ++i;
      continue;
    }
    size_t bytes = size_t{i - begin} << os_shift;
    if (os::purge(page->start + (size_t{begin} << os_shift), bytes)) {
      returned += bytes;
    } else {
      count(Counter::k_purges_refused);
    }
  }
  count(Counter::k_holes_bytes, returned);
  return returned;
}

void page_purge_tail(Page* page, uint32_t used, unsigned os_shift) {
  // What was longer than the span was another's.
  uint32_t end = min_of<uint32_t>(page->touched, page->slices << (kSliceShift - os_shift));
  if (end <= used || !arena_of(page)->may_purge()) return;
  bool purged = os::purge(page->start + (size_t{used} << os_shift), size_t{end - used} << os_shift);
  if (!purged) count(Counter::k_purges_refused);
}

}  // namespace ebb
