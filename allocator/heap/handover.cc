#include "heap/handover.h"

#include "heap/shared_pages.h"
#include "page/remote.h"

namespace ebb {
namespace {

Page* first_of(const Thread* thread) { return thread->handover.load(std::memory_order_relaxed); }

// Takes the pages for which wanted(page) is true out of the thread's list and calls done(page) for each.
template <class Wanted, class Done>
void take_out(Thread* thread, Wanted wanted, Done done) {
  Page* kept = nullptr;
  for (Page* page = first_of(thread); page != nullptr;) {
    Page* next = as_page(page->prev);
    bool is_wanted = wanted(page);
    page->prev = is_wanted ? nullptr : kept;
    if (is_wanted) done(page);
    else kept = page;
    page = next;
  }
  thread->handover.store(kept, std::memory_order_relaxed);
}

void retire_empty(Thread* thread) {
  if (first_of(thread) == nullptr || thread == thread_self_if_any()) return;
  thread_freeze(thread);
  take_out(thread, page_is_all_back, page_retire);
  thread_thaw(thread);
}

}  // namespace

void handover_add(Thread* thread, ThreadHeap* part) {
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    for (Block* block = part->free[cls]; block != nullptr;) {
      Block* next = block->next;
      remote::Pushed pushed = remote::push(part->active[cls], block);
      EBB_ASSERT(pushed == remote::kPushed);
      (void)pushed;
      block = next;
    }
    part->free[cls] = nullptr;
    for (Page* page : {part->active[cls], part->spare[cls]}) {
      if (page == nullptr) continue;
      remote::watch(page, __atomic_load_n(&page->countdown, __ATOMIC_RELAXED));
      page->prev = first_of(thread);
      thread->handover.store(page, std::memory_order_relaxed);
      thread->touched = true;
    }
    part->active[cls] = part->spare[cls] = nullptr;
  }
  take_out(thread, page_is_all_back, page_retire);
}

void handover_give_up(Thread* thread, bool recount) {
  take_out(thread, [](Page*) { return true; }, [recount](Page* page) {
    if (recount) count_anew(page);
    page_release(page);
  });
}

void handover_drop(Thread* thread, const FirstClassHeap* heap) {
  bool own = thread == thread_self_if_any();
  if (!own) thread_freeze(thread);  // its own pages were given up when it entered
  auto is_of_heap = [heap](Page* page) { return page->heap.load(std::memory_order_relaxed) == heap; };
  take_out(thread, is_of_heap, [](Page*) {});
  if (!own) thread_thaw(thread);
}

void handover_collect(OwnerId owner) {
  // The caller may be a signal handler that interrupted a holder of the lock. Then it is for a pass to do.
  if (!g_thread_lock.try_lock()) return;
  for (Thread* thread = g_threads; thread != nullptr; thread = thread->next) {
    if (thread->id() == owner) retire_empty(thread);
  }
  g_thread_lock.unlock();
}

void handover_collect_all() {
  LockGuard registry(g_thread_lock);
  for (Thread* thread = g_threads; thread != nullptr; thread = thread->next) retire_empty(thread);
}

}  // namespace ebb
