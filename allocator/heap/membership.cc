#include "heap/membership.h"

#include "base/test_point.h"

namespace ebb {

Heap* lock_heap_of(const Page* page) {
  for (;;) {
    Heap* heap = page->heap.load(std::memory_order_acquire);
    EBB_TEST_POINT("heap.found");
    heap->lock.lock();
    EBB_TEST_POINT("heap.looking");
    if (EBB_LIKELY(page->heap.load(std::memory_order_relaxed) == heap)) return heap;
    heap->lock.unlock();
  }
}

void list_page_locked(Heap* heap, Page* page, bool at_back) {
  std::atomic<Page*>& front_cell = heap->shared[page->cls];
  Page* front = front_cell.load(std::memory_order_relaxed);
  if (front == nullptr) {
    page->next = page->prev = page;
    front_cell.store(page, std::memory_order_relaxed);
    return;
  }
  page->next = front;
  page->prev = front->prev;
  page->prev->next = page;
  front->prev = page;
  if (!at_back) front_cell.store(page, std::memory_order_relaxed);
}

void unlist_page_locked(Heap* heap, Page* page) {
  std::atomic<Page*>& front = heap->shared[page->cls];
  if (page->next == page) {
    front.store(nullptr, std::memory_order_relaxed);
  } else {
    page->next->prev = page->prev;
    page->prev->next = page->next;
    if (front.load(std::memory_order_relaxed) == page) front.store(as_page(page->next), std::memory_order_relaxed);
  }
  page->next = page->prev = nullptr;
}

}  // namespace ebb
