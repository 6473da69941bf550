// Resizing blocks, and asking their size.
#include <cstring>

#include "base/bits.h"
#include "heap/alloc.h"
#include "heap/checked_release.h"
#include "heap/large.h"
#include "heap/misuse.h"
#include "os/os.h"

namespace ebb {
namespace {

// What a block gets that has to move to grow: some more than it asked for, so that one grown in small steps is copied a
// logarithmic number of times. From two OS pages up what lies behind its contents is not touched, while the blocks that
// it leaves behind were: longer steps are the cheaper ones there. A large block keeps room behind it instead, which is no
// part of it; if that was used before, its memory stays until the block shrinks or is freed.
constexpr bool grows_in_steps(size_t usable, size_t size) { return size - usable <= usable / 8; }

constexpr size_t size_with_growth(size_t usable, size_t size) {
  return min_of(size + size / (grows_in_steps(usable, size) && size >= 8 * KiB ? 2 : 8), kLargestBlock);
}

void* allocate_to_grow(size_t usable, size_t size) {
  if (size <= kLargestBlock) return allocate(size_with_growth(usable, size));
  return grows_in_steps(usable, size) ? allocate_with_room(size, size / 4) : nullptr;
}

EBB_COLD void* refuse() {
  os::set_out_of_memory();
  return nullptr;
}

EBB_INLINE size_t usable_of(const Page* page) {
  return EBB_LIKELY(page->kind == SliceKind::kPage) ? page->block_bytes : page->large.usable;
}

// All usable bytes travel: programs ask for the usable size and fill it.
void* move_block(void* from, void* to, size_t bytes) {
  memcpy(to, from, bytes);
  release(from);
  return to;
}

EBB_NOINLINE void* reallocate_moving(void* p, size_t size, size_t usable) {
  bool grows = size > usable;
  void* to = grows ? allocate_to_grow(usable, size) : nullptr;
  if (to == nullptr) to = allocate(size);
  // A block that was to shrink stays where it is: that is no failure.
  if (EBB_UNLIKELY(to == nullptr)) return grows ? nullptr : p;
  return move_block(p, to, grows ? usable : min_of(usable, usable_bytes(to)));
}

EBB_NOINLINE void* reallocate_large(Page* page, void* p, size_t size) {
  void* resized = size > kLargestBlock ? large_resize(page, size) : nullptr;
  return resized != nullptr ? resized : reallocate_moving(p, size, page->large.usable);
}

}  // namespace

size_t usable_bytes(const void* p) {
  if (p == nullptr) return 0;
  Page* page = page_of_block(p);
  if (EBB_LIKELY(page != nullptr)) return usable_of(page);
  report_invalid_pointer("size request", p);
  return 0;
}

void* reallocate(void* p, size_t size) {
  Page* page = page_of_block(p);
  if (EBB_UNLIKELY(page == nullptr)) {
    report_invalid_pointer("realloc", p);
    return refuse();
  }
  if (EBB_UNLIKELY(size > kMaxRequestBytes)) return refuse();
  if (page->kind == SliceKind::kLarge) {
    // A sample may be of a class's size.
    if (page->large.usable <= kLargestBlock && stays_in_block(page->large.usable, size)) return p;
    // Within the OS page that it ends in, nothing changes.
    if (size <= page->large.usable && large_usable(size) == page->large.usable && size > kLargestBlock) return p;
    return reallocate_large(page, p, size);
  }
  size_t usable = page->block_bytes;
  if (stays_in_block(usable, size)) return p;
  return reallocate_moving(p, size, usable);
}

void* reallocate_aligned(void* p, size_t alignment, size_t size) {
  Page* page = page_of_block(p);
  if (EBB_UNLIKELY(page == nullptr)) {
    report_invalid_pointer("realloc", p);
    return refuse();
  }
  if (EBB_UNLIKELY(size > kMaxRequestBytes)) return refuse();
  size_t usable = usable_of(page);
  bool aligned = reinterpret_cast<uintptr_t>(p) % alignment == 0;
  if (aligned && size <= usable && size >= usable / 2) return p;
  void* to = allocate_aligned(alignment, size);
  if (EBB_UNLIKELY(to == nullptr)) return nullptr;
  return move_block(p, to, min_of(usable, usable_bytes(to)));
}

}  // namespace ebb
