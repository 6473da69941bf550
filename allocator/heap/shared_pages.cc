#include "heap/shared_pages.h"

#include "arena/cage.h"
#include "base/bits.h"
#include "base/test_point.h"
#include "heap/membership.h"
#include "os/os.h"
#include "page/remote.h"
#include "stats/counters.h"

namespace ebb {

constinit Lock g_sweep_step_lock{LockRank::kSweepStep};
constinit Heap g_main_heap{true};
constinit std::atomic<uint64_t> g_sparse_pages{0};

namespace {

// After how many more frees somebody should look at an ownerless page with `live` live blocks.
//   full or nearly: an eighth of it, so that whoever adopts it finds more than a crumb;
//   then: when it has become sparse, so that holes can be punched;
//   then: whenever half of what was live is gone, for further holes, and at last when it is empty.
uint32_t release_threshold(const Page* page, uint32_t live, uint32_t sparse) {
  uint32_t eighth = page->capacity / 8;
  uint32_t free_blocks = page->capacity - live;
  if (free_blocks < eighth) return min_of(live, eighth - free_blocks);
  if (live > sparse) return min_of(live, max_of(live - sparse, 1u));
  return (live + 1) / 2;
}

bool worth_listing(const Page* page, uint32_t live) {
  return page->capacity - live >= max_of(page->capacity / 8u, 1u);
}

// A page with few live blocks waits for the scavenger to punch holes in it. Counted behind its release: a punch sets
// the count to zero before it looks, so it finds the page released, or the count tells of it afterwards. The page is
// anybody's by then: its heap may be another one, or none, where it was given back and its entry in the table, too.
void count_sparse(const Page* page) {
  Heap* heap = page->heap.load(std::memory_order_relaxed);
  if (heap != nullptr && !heap->is_main()) first_class(heap)->has_sparse.store(true, std::memory_order_seq_cst);
  if (g_sparse_pages.fetch_add(1, std::memory_order_seq_cst) == 0) announce_armed();
}

void list_page(Page* page, bool at_back) {
  Heap* heap = lock_heap_of(page);
  list_page_locked(heap, page, at_back);
  page->flags |= kFlagListed;
  heap->lock.unlock();
}

void unlist_claimed_locked(Heap* heap, Page* page) {
  unlist_page_locked(heap, page);
  page->flags &= static_cast<uint8_t>(~kFlagListed);
}

}  // namespace

void page_unlist(Page* page) {
  if ((page->flags & kFlagListed) == 0) return;
  Heap* heap = lock_heap_of(page);
  unlist_claimed_locked(heap, page);
  heap->lock.unlock();
}

void page_retire(Page* page) {
  // Pages of the main heap stay there.
  if ((page->flags & kFlagListed) != 0 || !in_main_heap(page)) {
    Heap* heap = lock_heap_of(page);
    if ((page->flags & kFlagListed) != 0) unlist_claimed_locked(heap, page);
    if (!heap->is_main()) {
      remove_span_locked(first_class(heap), page);
      uncharge(heap, charge_of(page));
    }
    heap->lock.unlock();
  }
  page_note_used(page, floor_log2(os::page_bytes()));
  page_unmake(page);
  count(Counter::k_pages_freed);
  arena_of(page)->give(page);
}

void page_release(Page* page) {
  page->owner.store(kNoOwner, std::memory_order_relaxed);
  // The end of its heap finds it in order. The main heap never ends.
  if (!in_main_heap(page)) page_trim_tail(page, floor_log2(os::page_bytes()));
  uint32_t sparse = sparse_blocks(page->block_bytes, os::page_bytes(), page->capacity);
  uint64_t word = page->remote.load(std::memory_order_acquire);
  bool is_sparse;
  for (;;) {
    // What others pushed stays in their list until somebody allocates from the page: folding it in would
    // mean walking it.
    uint32_t live = page->countdown - remote::count_of(word);
    if (live == 0) return page_retire(page);
    if (live <= sparse && live < page->punched_live) page->flags |= kFlagSparse;
    is_sparse = (page->flags & kFlagSparse) != 0;
    if (worth_listing(page, live) && (page->flags & kFlagListed) == 0) list_page(page, is_sparse);
    // Released last: from here on the page is anybody's.
    if (remote::try_release(page, &word, release_threshold(page, live, sparse), is_sparse)) break;
  }
  EBB_TEST_POINT("page.released");
  if (is_sparse) count_sparse(page);
  count(Counter::k_pages_released);
}

Page* page_claim_sparse(Heap* heap, uint64_t serial, size_t cls, Page* anchor) {
  // So many pages at a time: the lock is held for some microseconds. A page that is not sparse is the mark then.
  constexpr int kLooks = 64;
  if (heap->shared[cls].load(std::memory_order_relaxed) == nullptr) return nullptr;  // read again under the lock
  LockGuard guard(heap->lock);
  if (!heap->is_main() && first_class(heap)->serial.load(std::memory_order_relaxed) != serial) return nullptr;
  Page* front = heap->shared[cls].load(std::memory_order_relaxed);
  if (front == nullptr || anchor == front) return nullptr;
  // The heap was deleted meanwhile, and its structure may be another heap's: the rest is found with the main heap.
  if (anchor != nullptr && anchor->heap.load(std::memory_order_relaxed) != heap) return nullptr;
  Page* page = as_page(anchor != nullptr ? anchor->prev : front->prev);
  for (int i = 0;; ++i, page = as_page(page->prev)) {
    if ((remote::is_sparse(page) || i >= kLooks) && remote::try_claim(page)) return page;
    if (page == front) return nullptr;
  }
}

Page* page_adopt(Heap* heap, size_t cls) {
  // Pages that somebody else is just working on are passed over, a few of them.
  constexpr int kTries = 4;
  if (heap->shared[cls].load(std::memory_order_relaxed) == nullptr) return nullptr;  // read again under the lock
  LockGuard guard(heap->lock);
  Page* front = heap->shared[cls].load(std::memory_order_relaxed);
  Page* page = front;
  for (int i = 0; i < kTries && page != nullptr; ++i) {
    if (remote::try_claim(page)) {
      unlist_claimed_locked(heap, page);
      count(Counter::k_pages_adopted);
      return page;
    }
    page = as_page(page->next);
    if (page == front) break;
  }
  return nullptr;
}

}  // namespace ebb

