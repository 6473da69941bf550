// A page: one or several slices cut into blocks of one size class, and its metadata.
//
// The metadata has two cache lines. The first (Slice) is shared: other threads push what they free to
// `remote`. The second belongs to the page's owner alone, who needs no atomic operation on it:
//
//   owner      the thread whose frees are local; kNoOwner for an *ownerless* page
//   free       blocks that came back to the owner
//   countdown  blocks that are not on `free`, in a hole or uncarved: those that the program has, those in the
//              thread heap's list, and those pushed to `remote` but not folded in. Every local free takes one
//              off, so it reaches zero exactly when the page holds no live block.
//
// Whoever has *claimed* an ownerless page (page/remote.h) is its owner in this sense, too.
//
// Invariants while owned or claimed (is_valid()):
//   carved <= capacity;  countdown + length(free) + hole_blocks == carved.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "arena/slice.h"
#include "base/compiler.h"
#include "page/block.h"
#include "page/size_class.h"

namespace ebb {

class Heap;

using OwnerId = uintptr_t;
constexpr OwnerId kNoOwner = 0;      // of pages that nobody owns
constexpr OwnerId kNobodyHere = 1;   // of threads that own nothing: never equal to a page's owner

enum PageFlag : uint8_t {
  kFlagZero = 1,     // uncarved memory of the page reads as zero
  kFlagListed = 2,   // in its heap's list of pages to allocate from (heap/heap.h)
  kFlagSparse = 4,   // few live blocks: worth punching holes in
  kFlagMoved = 16,   // kLarge: its memory came from elsewhere by os::move_pages
  kFlagSampled = 32,  // kLarge: its block is a live sample (heap/sample_list.h)
  kFlagTailClean = 8,  // OS pages that are wholly uncarved hold no memory
};

constexpr uint16_t kNeverPunched = UINT16_MAX;

struct Sample;

struct Page : Slice {
  std::atomic<OwnerId> owner;
  union {
    Block* free;
    Sample* sample;  // kLarge with kFlagSampled
  };
  uint32_t countdown;
  uint32_t block_bytes;
  uint16_t carved;
  uint16_t capacity;
  uint16_t hole_blocks;  // blocks that overlap a hole; on no list
  uint8_t cls;
  uint8_t flags;
  std::atomic<Heap*> heap;  // changes when a heap is deleted; see heap/membership.h
  union {
    uint64_t holes[2];  // a bit for each OS page whose memory was given back
    struct {
      size_t usable;  // kLarge: bytes that the program may use
      size_t offset;  // kLarge: distance of the block from the start of the span
    } large;
  };
  uint16_t punched_live;  // live blocks when holes were last punched; kNeverPunched since it was allocated from
  // OS pages at the start of the span that may hold memory: survives the page, as the next one may use less. May
  // be too small where the slice was part of something longer meanwhile.
  uint16_t touched;
  uint16_t reserved[2];
  // Of the slice, not of the page: each slice has its own.
  [[no_unique_address]] LiveBits live;

  bool has_blocks() const { return free != nullptr || hole_blocks != 0 || carved < capacity; }
};
static_assert(sizeof(Page) == kPageStride, "metadata of a slice");
static_assert(sizeof(Slice) == kCacheLine, "the owner's part is a cache line of its own");

inline Page* as_page(Slice* slice) { return static_cast<Page*>(slice); }

// The owner's free takes one off the countdown; true when it is at zero. Others may read it to see that a page which
// its owner does not allocate from any more is empty (page_is_all_back): plain order of stores is enough where the
// processor has it, and they see to it elsewhere. ThreadSanitizer has to be told.
EBB_INLINE bool page_count_down(Page* page) {
#if defined(__SANITIZE_THREAD__)
  return __atomic_sub_fetch(&page->countdown, 1, __ATOMIC_RELEASE) == 0;
#else
  return --page->countdown == 0;
#endif
}

// Without the owner, who allocates from it no more: whether all its blocks are back, and the owner is not in the
// middle of freeing one. The blocks that the owner freed are counted last, so what it did before is done.
bool page_is_all_back(Page* page);

// The first slice of the page that `slice` belongs to.
inline Page* page_head(Slice* slice) {
  return as_page(slice->kind == SliceKind::kPageInterior ? slice_before(slice, slice->back) : slice);
}

// Makes a fresh span into a page of class `cls`; the caller is its owner.
Page* page_make(Slice* span, size_t cls, Heap* heap, bool zero);

// Ends the page; its span may then be given back to its arena.
void page_unmake(Page* page);

// The same with all the blocks that live in it, which nobody uses any more. Its owner is kNoOwner already.
EBB_INLINE void page_unmake_with_blocks(Page* page) {
  for (uint32_t i = 1; i < page->slices; ++i) slice_after(page, i)->kind = SliceKind::kUsedTail;
  page->kind = SliceKind::kUsed;
}

// OS pages that hold what the page has carved.
inline uint32_t page_used_os_pages(const Page* page, unsigned os_shift) {
  return static_cast<uint32_t>((size_t{page->carved} * page->block_bytes + (size_t{1} << os_shift) - 1) >> os_shift);
}

// The page ends, and leaves the memory to the next one in its span.
EBB_INLINE void page_note_used(Page* page, unsigned os_shift) {
  uint32_t used = page_used_os_pages(page, os_shift);
  if (page->touched < used) page->touched = static_cast<uint16_t>(used);
}

// Gives back what an earlier page left in the span behind what this one has carved. Spans that are used again and
// again would pile up what was of no use for the life of a page. The caller owns the page, or it is nobody's any more.
EBB_COLD void page_purge_tail(Page* page, uint32_t used, unsigned os_shift);
EBB_INLINE void page_trim_tail(Page* page, unsigned os_shift) {
  uint32_t used = page_used_os_pages(page, os_shift);
  if (EBB_UNLIKELY(page->touched > used)) page_purge_tail(page, used, os_shift);
  page->touched = static_cast<uint16_t>(used);
}

// Cuts up to `blocks` more blocks and puts them in front of `free`; carved < capacity must hold.
void page_carve(Page* page, uint32_t blocks);

// Moves what other threads freed to `free`. Returns the number of blocks.
uint32_t page_fold_remote(Page* page);

// Puts a list of blocks that were counted as handed out back to `free`.
void page_put_list(Page* page, Block* list);

// Fills one hole: its blocks go to `free`. hole_blocks != 0 must hold.
void page_fill_hole(Page* page);

// Whether a block overlaps a hole.
bool page_block_in_hole(const Page* page, uint32_t block);

// Gives the OS pages that hold no live block back. Returns the bytes given back. The caller has claimed the page.
size_t page_punch_holes(Page* page);

// Hands the whole of `free` out.
inline Block* page_take_list(Page* page) {
  Block* list = page->free;
  page->free = nullptr;
  page->countdown = static_cast<uint32_t>(page->carved - page->hole_blocks);
  return list;
}

// True when `p` is the start of a carved block of the page.
bool page_is_block(const Page* page, const void* p);

bool page_is_valid(const Page* page);

}  // namespace ebb
