#include "heap/handover.h"

#include "arena/arena.h"
#include "base/compiler.h"
#include "heap/shared_pages.h"
#include "page/remote.h"

namespace ebb {
namespace {

Page* first_of(const Thread* thread) { return thread->handover.load(std::memory_order_relaxed); }

// Takes the pages for which wanted(page) is true out of the thread's list and calls done(page) for each.
template <class Wanted, class Done>
void take_out(Thread* thread, Wanted wanted, Done done) {
  Page* kept = nullptr;
  uint32_t kept_pages = 0;
  for (Page* page = first_of(thread); page != nullptr;) {
    Page* next = as_page(page->prev);
    bool is_wanted = wanted(page);
    page->prev = is_wanted ? nullptr : kept;
    if (is_wanted) {
      done(page);
    } else {
      kept = page;
      ++kept_pages;
    }
    page = next;
  }
  thread->handover.store(kept, std::memory_order_relaxed);
  thread->handover_pages.store(kept_pages, std::memory_order_relaxed);
}

void retire_empty_locked(Thread* thread) {
  thread->handover_empty = 0;
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
      thread->handover_pages.fetch_add(1, std::memory_order_relaxed);
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

void handover_note_empty(OwnerId owner) {
  // The list is looked through when an eighth of it is empty, so that a page costs the same whatever its length.
  constexpr uint32_t kShare = 8;
  // Some microseconds: long enough for others who do the same. The caller may be a signal handler that interrupted a
  // holder of the lock, so not for ever: then it is for a pass to do.
  constexpr int kTries = 1000;
  for (int i = 0; !g_thread_lock.try_lock(); ++i) {
    if (i == kTries) return announce_armed();
    cpu_relax();
  }
  for (Thread* thread = g_threads; thread != nullptr; thread = thread->next) {
    if (thread->id() != owner) continue;
    ++thread->handover_empty;
    uint32_t pages = thread->handover_pages.load(std::memory_order_relaxed);
    if (thread->handover_empty * kShare >= pages) retire_empty_locked(thread);
    break;
  }
  g_thread_lock.unlock();
}

void handover_collect() {
  LockGuard registry(g_thread_lock);
  for (Thread* thread = g_threads; thread != nullptr; thread = thread->next) retire_empty_locked(thread);
}

}  // namespace ebb
