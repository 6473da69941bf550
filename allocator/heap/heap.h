// A heap: what its threads share. Each thread that allocates from a heap has a ThreadHeap for it
// (heap/thread_heap.h); the Heap holds the pages that no thread owns and that have free blocks.
//
// Thread safety: the lists are guarded by `lock`. A page enters or leaves a list only by the hand of its
// owner or claimer while it holds the lock; or with all of a heap that is deleted or destroyed, under the lock.
//
// Invariants:
//  1. A page in `shared[c]` has class c, belongs to this heap, and has kFlagListed. It is ownerless, or
//     claimed by somebody who will release it or take it out. A page in no list has next == nullptr.
//  2. An ownerless page that is not listed is full, or has fewer free blocks than the free that will claim
//     and list it waits for (release_threshold in heap/shared_pages.cc).
//  3. A first-class heap knows all its spans (heap/membership.h) and all its thread heaps (heap/parts.h), so
//     that its end takes no search. The main heap, which never ends, keeps neither.
//  4. The memory of a Heap is only ever reused as a Heap (heap/heap_structures.h), and its lock stays one: whoever
//     followed a stale Page::heap may take the lock, and finds out behind it (heap/membership.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "arena/span_source.h"
#include "heap/thread_heap.h"
#include "os/lock.h"
#include "page/page.h"

namespace ebb {

struct Subprocess;

// Called, with no lock held, when an allocation was refused because of the heap's limit.
using LimitCallback = void (*)(Heap* heap, size_t wanted_bytes, void* argument);

class Heap {
 public:
  constexpr explicit Heap(bool is_main) : lock(LockRank::kHeap), is_main_(is_main) {}

  Lock lock;
  // First-class heaps: the thread whose part is FirstClassHeap::home, the first one that allocated; most heaps have
  // no other, and need no further memory then. kNoOwner: nobody's, or the heap has ended.
  std::atomic<OwnerId> home_owner{kNoOwner};
  // Pages to allocate from, by class: dense ones in front, those with holes at the back. Circular, linked by
  // Slice::next and prev; the pointer is the front. Written under the lock, read without it as a hint.
  std::atomic<Page*> shared[kClassCount] = {};

  bool is_main() const { return is_main_; }

 private:
  const bool is_main_;  // not the main heap of a sub-process
};

// A heap that a program makes and ends.
class FirstClassHeap : public Heap {
 public:
  FirstClassHeap() : Heap(false) {}

  std::atomic<uint64_t> serial{0};  // of this life of the structure; 0 between two lives

  // Guarded by `lock`.
  ThreadHeap* parts = nullptr;  // of all its threads, linked by heap_next and heap_prev
  Slice* spans = nullptr;       // all its pages and large blocks, linked by ring_next and ring_prev

  std::atomic<size_t> charged_bytes{0};        // memory handed out to it: carved blocks, and large ones
  std::atomic<size_t> limit_bytes{SIZE_MAX};   // charged_bytes does not exceed this
  std::atomic<LimitCallback> limit_callback{nullptr};
  std::atomic<void*> limit_argument{nullptr};
  std::atomic<uint32_t> default_users{0};      // threads whose malloc uses it

  std::atomic<bool> has_sparse{false};         // pages that wait for the scavenger; a hint
  bool inherits = false;                       // the main heap of a sub-process: it gets what deleted heaps leave

  SpanSource source;                 // where its spans come from
  Subprocess* subprocess = nullptr;  // whose heap it is; null: the process's own
  FirstClassHeap* registry_next = nullptr;  // list of all heaps (heap/heap_lifetime.cc), and of unused ones
  FirstClassHeap* registry_prev = nullptr;

  ThreadHeap home;
};

inline FirstClassHeap* first_class(Heap* heap) { return static_cast<FirstClassHeap*>(heap); }
inline const FirstClassHeap* first_class(const Heap* heap) { return static_cast<const FirstClassHeap*>(heap); }

EBB_HIDDEN extern Heap g_main_heap;

}  // namespace ebb
