#include "heap/checked_release.h"

#if defined(EBB_DEBUG)

#include "heap/misuse.h"
#include "heap/parts.h"
#include "heap/thread.h"

namespace ebb {
namespace {

struct MarkedBlock {
  Block* next;
  uintptr_t mark;
};

uintptr_t mark_of(const void* p) { return ~reinterpret_cast<uintptr_t>(p) * 0x9E3779B97F4A7C15u; }

bool is_on_list(const Block* list, const void* p) {
  for (; list != nullptr; list = list->next) {
    if (list == p) return true;
  }
  return false;
}

// Blocks of the page that its owner could hand out again.
bool is_free_block(const Page* page, const void* p) {
  if (is_on_list(page->free, p)) return true;
  Thread* thread = thread_self_if_any();
  if (thread == nullptr) return false;
  ThreadHeap* heap = part_find(thread, page->heap.load(std::memory_order_relaxed));
  return heap != nullptr && heap->active[page->cls] == page && is_on_list(heap->free[page->cls], p);
}

}  // namespace

bool may_release(Page* page, void* p) {
  if (!page_is_block(page, p)) {
    report_invalid_pointer("free", p);
    return false;
  }
  MarkedBlock* block = static_cast<MarkedBlock*>(p);
  if (block->mark == mark_of(p) && is_free_block(page, p)) {
    report_double_free(p);
    return false;
  }
  block->mark = mark_of(p);
  return true;
}

bool may_release_remotely(Page* page, void* p) {
  if (page_is_block(page, p)) return true;
  report_invalid_pointer("free", p);
  return false;
}

}  // namespace ebb

#elif defined(EBB_SECURE)

#include "heap/misuse.h"

namespace ebb {

bool refuse_release(Page* page, void* p) {
  if (page_is_block(page, p)) {
    report_double_free(p);
  } else {
    report_invalid_pointer("free", p);
  }
  return false;
}

}  // namespace ebb

#endif
