// Frees by threads that do not own the page: one atomic word a page.
//
//   bits  0..19  head of the list of freed blocks: 1 + (offset in the page) / kBlockAlign; 0 for none
//   bits 20..35  number of blocks in the list
//   bits 36..51  pushes until somebody must look at the page: ownerless ones, and owned ones that are watched
//   bit  52      ownerless
//   bit  53      ownerless and sparse: the scavenger should punch holes in it
//
//            push: count + 1                          push: count + 1, remaining - 1
//              ┌──┐                                        ┌──┐
//              │  ▼              release()                 │  ▼
//            OWNED ───────────────────────────────▶ OWNERLESS(remaining)
//              ▲  ▲                                        │  │
//              │  └──────── try_claim() ───────────────────┘  │
//              └─────────── push that makes remaining 0 ──────┘   the pusher has claimed the page
//
// Invariants:
//  1. A page is OWNED by exactly one: the thread in `owner`, or whoever claimed it and has not released it.
//  2. A pushed block stays in the list until the page's owner takes the list; nobody else ever does.
//  3. On an ownerless page `remaining` is at least 1 and at most the number of live blocks. So the free that
//     empties the page, at the latest, claims it: no page is ever empty, ownerless and unseen.
//  4. On a watched page (watch()) it is the number of blocks that were live then, so the push that finds it used up
//     is of the last one, unless the owner freed some itself.
// A successful push or release has release order, taking or claiming has acquire order: the owner's plain
// fields travel along.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/test_point.h"
#include "page/page.h"

namespace ebb::remote {

constexpr uint64_t kHeadMask = (uint64_t{1} << 20) - 1;
constexpr unsigned kCountShift = 20, kRemainingShift = 36;
constexpr uint64_t kFieldMask = 0xFFFF;
constexpr uint64_t kOneBlock = uint64_t{1} << kCountShift;
constexpr uint64_t kOnePush = uint64_t{1} << kRemainingShift;
constexpr uint64_t kOwnerless = uint64_t{1} << 52;
constexpr uint64_t kSparse = uint64_t{1} << 53;
// Owned: `remaining` starts here and never gets to 0, as a page has at most 4096 blocks.
constexpr uint64_t kOwned = kFieldMask << kRemainingShift;

inline uint32_t count_of(uint64_t word) { return static_cast<uint32_t>((word >> kCountShift) & kFieldMask); }

inline Block* head_of(const Page* page, uint64_t word) {
  uint64_t head = word & kHeadMask;
  return head == 0 ? nullptr : reinterpret_cast<Block*>(page->start + (head - 1) * kBlockAlign);
}

enum Pushed : uint8_t {
  kPushed = 0,
  kClaimed,   // the page was ownerless and this push has claimed it
  kLastBack,  // a watched page has no live block any more; it is its owner's still
};

// Pushes a freed block.
EBB_INLINE Pushed push(Page* page, Block* block) {
  uint64_t head = static_cast<uint64_t>(reinterpret_cast<char*>(block) - page->start) / kBlockAlign + 1;
  uint64_t word = page->remote.load(std::memory_order_relaxed);
  for (;;) {
    block->next = head_of(page, word);
    uint64_t next = (((word & ~kHeadMask) | head) + kOneBlock) - kOnePush;
    bool look = (next >> kRemainingShift & kFieldMask) == 0;
    if (look) next = (next & ~(kOwnerless | kSparse)) | kOwned;
    EBB_TEST_POINT("remote.push");
    if (EBB_LIKELY(page->remote.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                                      std::memory_order_relaxed))) {
      if (EBB_LIKELY(!look)) return kPushed;
      return (word & kOwnerless) != 0 ? kClaimed : kLastBack;
    }
  }
}

// The owner takes the list; `count` is its length.
inline Block* take(Page* page, uint32_t* count) {
  if (count_of(page->remote.load(std::memory_order_relaxed)) == 0) {
    *count = 0;
    return nullptr;
  }
  uint64_t word = page->remote.exchange(kOwned, std::memory_order_acquire);
  *count = count_of(word);
  return head_of(page, word);
}

// Watches an owned page with `handed_out` blocks that are live or pushed. The owner may be freeing some at this moment,
// and be late to count them.
inline void watch(Page* page, uint32_t handed_out) {
  uint64_t word = page->remote.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    uint64_t live = handed_out - count_of(word);
    if (live == 0) return;
    next = (word & (kHeadMask | kFieldMask << kCountShift)) | live << kRemainingShift;
  } while (!page->remote.compare_exchange_weak(word, next, std::memory_order_relaxed, std::memory_order_relaxed));
}

// Claims an ownerless page; false when it is owned by now.
inline bool try_claim(Page* page) {
  uint64_t word = page->remote.load(std::memory_order_relaxed);
  while ((word & kOwnerless) != 0) {
    uint64_t next = (word & (kHeadMask | kFieldMask << kCountShift)) | kOwned;
    if (page->remote.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// True when an ownerless page waits for the scavenger; a hint that a claim confirms.
inline bool is_sparse(const Page* page) { return (page->remote.load(std::memory_order_relaxed) & kSparse) != 0; }

// Makes an owned page ownerless; after `remaining` (at least 1) more pushes somebody claims it. `word` is the
// state that `remaining` was computed from; when it has changed since, nothing happens but that it is read
// anew, and false is returned: what was pushed meanwhile might have been the last live block.
inline bool try_release(Page* page, uint64_t* word, uint32_t remaining, bool sparse) {
  EBB_ASSERT(remaining >= 1 && remaining <= page->countdown - count_of(*word));
  EBB_ASSERT(page->owner.load(std::memory_order_relaxed) == kNoOwner);
  uint64_t next = (*word & (kHeadMask | kFieldMask << kCountShift)) | kOwnerless |
                  uint64_t{remaining} << kRemainingShift | (sparse ? kSparse : 0);
  EBB_TEST_POINT("remote.release");
  return page->remote.compare_exchange_strong(*word, next, std::memory_order_acq_rel, std::memory_order_acquire);
}

}  // namespace ebb::remote
