#include "page/page.h"

#include "base/bits.h"
#include "base/check.h"
#include "base/variant.h"
#include "os/os.h"
#include "page/live_blocks.h"
#include "page/remote.h"

namespace ebb {

Page* page_make(Slice* span, size_t cls, Heap* heap, bool zero) {
  Page* page = as_page(span);
  for (uint32_t i = 1; i < span->slices; ++i) {
    Slice* interior = slice_after(span, i);
    interior->kind = SliceKind::kPageInterior;
    interior->back = i;
  }
  page->free = nullptr;
  page->countdown = 0;
  page->block_bytes = static_cast<uint32_t>(class_bytes(cls));
  page->carved = 0;
  page->capacity = static_cast<uint16_t>((size_t{span->slices} << kSliceShift) / page->block_bytes);
  page->hole_blocks = 0;
  page->cls = static_cast<uint8_t>(cls);
  page->flags = zero ? kFlagZero | kFlagTailClean : 0;
  page->heap.store(heap, std::memory_order_relaxed);
  if (zero) page->touched = 0;
  page->next = page->prev = nullptr;
  page->punched_live = kNeverPunched;
  page->holes[0] = page->holes[1] = 0;
  page->remote.store(remote::kOwned, std::memory_order_relaxed);
  forget_live_blocks(page);
  page->kind = SliceKind::kPage;
  return page;
}

void page_unmake(Page* page) {
  EBB_ASSERT(page->countdown == remote::count_of(page->remote.load(std::memory_order_relaxed)));
  page->owner.store(kNoOwner, std::memory_order_relaxed);
  page_unmake_with_blocks(page);
}

namespace {

// Where the next blocks will be should be no matter of course: the list begins somewhere, and goes up or down.
[[maybe_unused]] void carve_in_disorder(Page* page, uint32_t blocks) {
  size_t bytes = page->block_bytes;
  char* first = page->start + page->carved * bytes;
  uint64_t bits = unforeseen_number(first);
  uint32_t at = static_cast<uint32_t>(bits >> 32) % blocks;
  uint32_t step = (bits & 2) != 0 ? 1 : blocks - 1;
  for (uint32_t i = 0; i < blocks; ++i, at = (at + step) % blocks) {
    Block* block = reinterpret_cast<Block*>(first + at * bytes);
    block->next = page->free;
    page->free = block;
  }
  page->carved = static_cast<uint16_t>(page->carved + blocks);
}

}  // namespace

void page_carve(Page* page, uint32_t blocks) {
  EBB_ASSERT(page->carved < page->capacity);
  blocks = min_of<uint32_t>(blocks, page->capacity - page->carved);
  if constexpr (kSecure) return carve_in_disorder(page, blocks);
  size_t bytes = page->block_bytes;
  char* first = page->start + page->carved * bytes;
  char* last = first + (blocks - 1) * bytes;
  auto link = [](char* block, char* next) { reinterpret_cast<Block*>(block)->next = reinterpret_cast<Block*>(next); };
  // Two at a time: most of what a new page costs.
  char* at = first;
  for (; at < last - bytes; at += 2 * bytes) {
    link(at, at + bytes);
    link(at + bytes, at + 2 * bytes);
  }
  if (at < last) link(at, last);
  reinterpret_cast<Block*>(last)->next = page->free;
  page->free = reinterpret_cast<Block*>(first);
  page->carved = static_cast<uint16_t>(page->carved + blocks);
}

void page_put_list(Page* page, Block* list) {
  if (list == nullptr) return;
  uint32_t count = 1;
  Block* last = list;
  while (last->next != nullptr) {
    last = last->next;
    ++count;
  }
  EBB_CHECK(count <= page->countdown);
  last->next = page->free;
  page->free = list;
  page->countdown -= count;
}

namespace {

Block* last_of(Block* list) {
  while (list->next != nullptr) list = list->next;
  return list;
}

}  // namespace

uint32_t page_fold_remote(Page* page) {
  uint32_t count;
  Block* list = remote::take(page, &count);
  if (list == nullptr) return 0;
  EBB_CHECK(count <= page->countdown);
  // Behind the shorter of the two lists comes the other.
  uint32_t own = static_cast<uint32_t>(page->carved - page->hole_blocks) - page->countdown;
  Block* first = own < count ? page->free : list;
  Block* second = own < count ? list : page->free;
  if (first == nullptr) {
    page->free = second;
  } else {
    if (second != nullptr) last_of(first)->next = second;
    page->free = first;
  }
  page->countdown -= count;
  return count;
}

bool page_is_all_back(Page* page) {
  uint32_t handed_out = __atomic_load_n(&page->countdown, __ATOMIC_ACQUIRE);
  if (handed_out != remote::count_of(page->remote.load(std::memory_order_acquire))) return false;
  return kStoresKeepTheirOrder || os::process_barrier();
}

bool page_is_block(const Page* page, const void* p) {
  size_t offset = static_cast<size_t>(static_cast<const char*>(p) - page->start);
  return offset % page->block_bytes == 0 && offset / page->block_bytes < page->carved;
}

bool page_is_valid(const Page* page) {
  if (page->carved > page->capacity || page->hole_blocks > page->carved) return false;
  uint32_t free_blocks = 0;
  for (const Block* block = page->free; block != nullptr; block = block->next) {
    if (!page_is_block(page, block) || ++free_blocks > page->carved) return false;
  }
  return page->countdown + free_blocks + page->hole_blocks == page->carved;
}

}  // namespace ebb
