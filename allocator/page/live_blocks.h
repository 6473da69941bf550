// Which addresses are blocks that the program has: exactly known in the secure build, not asked in others.
//
// Each slice has a bit for each address where a block may begin (LiveBits, beside its metadata). Handing a block out
// sets it, freeing takes it away, both with one atomic operation, so that of two frees of a block, even at the same
// moment, one finds it gone. A pointer into a block, or to a block that is free, has no bit. A page begins without any.
//
// Any thread.
#pragma once

#include "arena/cage.h"
#include "page/page.h"

namespace ebb {

#if defined(EBB_SECURE)

struct LiveBit {
  std::atomic<uint64_t>* word;
  uint64_t mask;

  // `slice`: the one that holds p.
  LiveBit(Slice* slice, const void* p) {
    uintptr_t index = reinterpret_cast<uintptr_t>(p) % kSliceBytes / kBlockAlign;
    word = &as_page(slice)->live.words[index / 64];
    mask = uint64_t{1} << (index % 64);
  }
};

// The bit of an address in a page or large block; p is not before its start.
EBB_INLINE LiveBit live_bit_in(const Page* page, const void* p) {
  size_t distance = static_cast<size_t>(static_cast<const char*>(p) - page->start) >> kSliceShift;
  return {slice_after(const_cast<Page*>(page), distance), p};
}

// A block that was just taken off its list goes to the program, without a trace of the list.
EBB_INLINE Block* hand_out(Block* block) {
  compiler_barrier();  // a fork child must not find it erased on the list
  LiveBit bit(find_slice(block), block);
  if (EBB_UNLIKELY((bit.word->fetch_or(bit.mask, std::memory_order_relaxed) & bit.mask) != 0)) {
    report_damaged_block(block);
  }
  block->next.erase();
  return block;
}

EBB_INLINE bool is_live(const Page* page, const void* p) {
  if (EBB_UNLIKELY(reinterpret_cast<uintptr_t>(p) % kBlockAlign != 0)) return false;
  LiveBit bit = live_bit_in(page, p);
  return (bit.word->load(std::memory_order_relaxed) & bit.mask) != 0;
}

// The program gives a block back; false when it does not have it.
EBB_INLINE bool take_back(Page* page, const void* p) {
  if (EBB_UNLIKELY(reinterpret_cast<uintptr_t>(p) % kBlockAlign != 0)) return false;
  LiveBit bit = live_bit_in(page, p);
  return (bit.word->fetch_and(~bit.mask, std::memory_order_relaxed) & bit.mask) != 0;
}

// No block of the page is the program's.
inline void forget_live_blocks(Page* page) {
  for (uint32_t i = 0; i < page->slices; ++i) {
    for (std::atomic<uint64_t>& word : as_page(slice_after(page, i))->live.words) word.store(0, std::memory_order_relaxed);
  }
}

// A large block begins to live. What another left in its span is of no meaning.
inline void mark_live(Page* page, const void* p) {
  LiveBit bit = live_bit_in(page, p);
  bit.word->fetch_or(bit.mask, std::memory_order_relaxed);
}

#else

EBB_INLINE Block* hand_out(Block* block) { return block; }
EBB_INLINE bool is_live(const Page*, const void*) { return true; }
EBB_INLINE bool take_back(Page*, const void*) { return true; }
inline void forget_live_blocks(Page*) {}
inline void mark_live(Page*, const void*) {}

#endif

}  // namespace ebb
