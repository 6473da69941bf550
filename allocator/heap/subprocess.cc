#include "heap/subprocess.h"

#include "arena/adopted.h"
#include "arena/cage.h"
#include "heap/heap_lifetime.h"
#include "heap/parts.h"
#include "heap/thread.h"

#include <new>

namespace ebb {
namespace {

constinit Lock g_lock{LockRank::kHeapRegistry};
constinit Subprocess* g_unused = nullptr;

Subprocess* take_structure() {
  {
    LockGuard guard(g_lock);
    if (Subprocess* unused = g_unused) {
      g_unused = unused->next_unused;
      return unused;
    }
  }
  void* memory = meta_take(sizeof(Subprocess));
  return memory == nullptr ? nullptr : new (memory) Subprocess();
}

void give_structure(Subprocess* subprocess) {
  LockGuard guard(g_lock);
  subprocess->next_unused = g_unused;
  g_unused = subprocess;
}

void use_part(Thread* thread, ThreadHeap* part) {
  auto count = [](Heap* heap, uint32_t by) {
    if (!heap->is_main()) first_class(heap)->default_users.fetch_add(by, std::memory_order_relaxed);
  };
  count(part->heap, 1);
  count(thread->current->heap, static_cast<uint32_t>(-1));
  thread->current = part;
  tls_heap = part;
}

}  // namespace

void subprocesses_lock_for_fork() { g_lock.lock(); }
void subprocesses_unlock_after_fork() { g_lock.open_after_fork(); }

Heap* default_heap_set(Heap* heap) {
  Thread* thread = thread_self();
  if (thread == nullptr) return nullptr;
  Gate gate(thread);
  ThreadHeap* part = gate.is_open() ? part_get(thread, heap) : nullptr;
  if (part == nullptr) return nullptr;
  Heap* before = thread->current->heap;
  use_part(thread, part);
  return before;
}

Subprocess* subprocess_new() {
  Subprocess* subprocess = take_structure();
  if (subprocess == nullptr) return nullptr;
  FirstClassHeap* main = heap_new(subprocess, {subprocess, nullptr});
  if (main == nullptr) {
    give_structure(subprocess);
    return nullptr;
  }
  main->inherits = true;
  subprocess->main.store(main, std::memory_order_relaxed);
  return subprocess;
}

bool subprocess_enter(Subprocess* subprocess) {
  Thread* thread = thread_self();
  if (thread == nullptr || default_heap_set(main_heap_of(subprocess)) == nullptr) return false;
  if (thread->subprocess != nullptr) thread->subprocess->threads.fetch_sub(1, std::memory_order_relaxed);
  if (subprocess != nullptr) subprocess->threads.fetch_add(1, std::memory_order_relaxed);
  thread->subprocess = subprocess;
  return true;
}

Subprocess* subprocess_current() {
  Thread* thread = thread_self_if_any();
  return thread != nullptr ? thread->subprocess : nullptr;
}

// Its main heap knows it.
bool subprocess_is_alive(const void* p) {
  const Slice* slice = find_known_slice(p);
  if (slice == nullptr || slice->kind != SliceKind::kMeta) return false;
  if (reinterpret_cast<uintptr_t>(p) % kCacheLine != 0) return false;
  const auto* subprocess = static_cast<const Subprocess*>(p);
  const FirstClassHeap* main = subprocess->main.load(std::memory_order_relaxed);
  return heap_is_alive(main) && main->subprocess == subprocess && main->inherits;
}

namespace {

// Takes the calling thread out of the sub-process, unless others are using it.
bool leave_last(Subprocess* subprocess) {
  const Thread* thread = thread_self_if_any();
  const Heap* current = thread != nullptr ? thread->current->heap : &g_main_heap;
  bool is_inside = thread != nullptr && thread->subprocess == subprocess;
  bool is_user = !current->is_main() && first_class(current)->subprocess == subprocess;
  if (subprocess->threads.load(std::memory_order_relaxed) != (is_inside ? 1 : 0)) return false;
  if (subprocess_default_users(subprocess) != (is_user ? 1 : 0)) return false;
  if (is_inside) return subprocess_enter(nullptr);
  return !is_user || default_heap_set(main_heap_of(thread->subprocess)) != nullptr;
}

}  // namespace

bool subprocess_destroy(Subprocess* subprocess) {
  if (!leave_last(subprocess)) return false;
  FirstClassHeap* main = subprocess->main.load(std::memory_order_relaxed);
  while (FirstClassHeap* heap = heap_of_subprocess(subprocess, main)) {
    if (!heap_destroy(heap)) return false;
  }
  if (!heap_destroy(main)) return false;
  subprocess->main.store(nullptr, std::memory_order_relaxed);
  arenas_release_of(subprocess);
  give_structure(subprocess);
  return true;
}

}  // namespace ebb
