// fork in a multithreaded process.
//
// Before: every thread is kept out of its slow path (kFrozen), and every lock is taken in rank order. So no
// queue, list or purge step is half done in the snapshot; at most one step's time passes. Threads go on in
// their fast paths, which is harmless: those change free lists and countdowns of owned pages only, in an
// order that leaves every list well linked, and the child counts anew.
// In between: handlers of others may allocate, as those that were registered before ours run inside ours. For this
// thread every lock is open meanwhile (os/lock.h).
// Child: all threads but the caller are gone. Their pages are given up, so that what the child frees comes
// back into use; pages that they had claimed but not released (remote::push by a thread outside its gate)
// are found by looking at every page. A block that was in the hands of such a thread is lost.
#include "arena/cage.h"
#include "heap/heap_lifetime.h"
#include "heap/parts.h"
#include "heap/process.h"
#include "heap/sample_list.h"
#include "heap/shared_pages.h"
#include "heap/subprocess.h"
#include "heap/thread.h"
#include "os/os.h"
#include "page/remote.h"

namespace ebb {

constinit ForkHooks g_fork_hooks{};
constinit std::atomic<bool> g_scavenger_present{false};

namespace {

template <class Visit>
void for_each_other_thread(Visit visit) {
  for (Thread* thread = g_threads; thread != nullptr;) {
    Thread* next = thread->next;
    if (thread != tls_thread) visit(thread);
    thread = next;
  }
}

void prepare() {
  process_start();
  if (g_fork_hooks.prepare != nullptr) g_fork_hooks.prepare();
  g_thread_lock.lock();
  for_each_other_thread(thread_freeze);
  subprocesses_lock_for_fork();
  heaps_lock_registry_for_fork();
  g_sweep_step_lock.lock();
  heaps_lock_for_fork();
  arenas_lock_for_fork();
  meta_lock_for_fork();
  samples_lock_for_fork();
  tls_holds_every_lock = true;
}

void open_all(bool child) {
  samples_unlock_after_fork();
  meta_unlock_after_fork();
  arenas_unlock_after_fork(child);
  heaps_unlock_after_fork(child);
  g_sweep_step_lock.open_after_fork();
  heaps_unlock_registry_after_fork();
  subprocesses_unlock_after_fork();
  g_thread_lock.open_after_fork();
  lock_rank_forget_all();
}

void parent() {
  tls_holds_every_lock = false;
  for_each_other_thread(thread_thaw);
  open_all(false);
  if (g_fork_hooks.parent != nullptr) g_fork_hooks.parent();
}

// Releases up to kMost pages that somebody had claimed and nobody owns; returns whether there may be more.
// `sparse` is set when pages wait for the scavenger.
bool release_some_orphans(Arena* arena, bool* sparse) {
  constexpr int kMost = 64;
  Page* orphans[kMost];
  int found = 0;
  arena->for_each_used([&](Slice* span) {
    Page* page = as_page(span);
    if (found == kMost || page->kind != SliceKind::kPage) return;
    if (page->owner.load(std::memory_order_relaxed) != kNoOwner) return;
    *sparse |= remote::is_sparse(page);
    if ((page->remote.load(std::memory_order_relaxed) & remote::kOwnerless) == 0) orphans[found++] = page;
  });
  for (int i = 0; i < found; ++i) page_release(orphans[i]);
  return found == kMost;
}

void release_orphans() {
  bool sparse = false;
  for (Arena* arena = first_arena(); arena != nullptr; arena = arena->next) {
    while (release_some_orphans(arena, &sparse)) {
    }
  }
  // Their count may be behind: somebody had released one and not counted it, or had set the count to zero to look.
  if (sparse && g_sparse_pages.exchange(1, std::memory_order_seq_cst) == 0) announce_armed();
}

void child() {
  tls_holds_every_lock = false;
  open_all(true);
  Thread* dead = nullptr;
  for_each_other_thread([&dead](Thread* thread) {
    (thread->prev != nullptr ? thread->prev->next : g_threads) = thread->next;
    if (thread->next != nullptr) thread->next->prev = thread->prev;
    thread->next = dead;
    dead = thread;
  });
  bool alone = dead == nullptr && !g_scavenger_present.load(std::memory_order_relaxed);
  // First, so that what is freed here finds somebody to tell: the scavenger is gone, too.
  if (g_fork_hooks.child != nullptr) g_fork_hooks.child();
  while (dead != nullptr) {
    Thread* thread = dead;
    dead = thread->next;
    thread_release_pages(thread, true);
    parts_leave(thread);
    thread_forget_unlinked(thread);
  }
  if (!alone) release_orphans();
}

}  // namespace

void process_watch_fork() { os::watch_fork(prepare, parent, child); }

}  // namespace ebb
