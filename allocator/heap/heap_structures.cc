// A chunk's books are kept in its entry of the slice table, in the fields of a page of blocks:
//   free       structures that were given back, linked by registry_next
//   carved     structures that were made
//   countdown  structures in use
//   next, prev the ring of chunks with room; of cold chunks, by next alone
//   heap       chunk_mark()
//   cls        the generation in which its last structure in use was given back
#include "heap/heap_structures.h"

#include <cstring>

#include "arena/arena.h"
#include "arena/cage.h"
#include "base/check.h"
#include "config/options.h"
#include "os/os.h"

namespace ebb {
namespace {

constexpr uint16_t kStructures = kSliceBytes / sizeof(FirstClassHeap);

struct Chunks {
  // A ring of those with unused structures, made or not: in front those with some in use, behind them those with none,
  // the latest first.
  Page* roomy = nullptr;
  Page* first_unused = nullptr;
  uint32_t unused_count = 0;
  bool armed = false;    // somebody was told that there are unused ones
  Page* cold = nullptr;  // without memory
};
constinit Chunks g_chunks;

// What tells a chunk from other memory of the allocator's own: the address of no heap.
Heap* chunk_mark() { return reinterpret_cast<Heap*>(&g_chunks); }

// What is kept from the OS until a purge is forced, for the next heap.
constexpr uint32_t kKeptUnused = 1;

FirstClassHeap* structure_at(const Page* chunk, uint32_t i) {
  return reinterpret_cast<FirstClassHeap*>(chunk->start + i * sizeof(FirstClassHeap));
}

// In front of `behind`, one of the ring; in front of its first one that is the last place. Null: the ring is empty.
void link_roomy(Page* chunk, Page* behind) {
  if (behind == nullptr) {
    chunk->next = chunk->prev = g_chunks.roomy = chunk;
    return;
  }
  chunk->next = behind;
  chunk->prev = behind->prev;
  chunk->prev->next = behind->prev = chunk;
}

void link_roomy_first(Page* chunk) {
  link_roomy(chunk, g_chunks.roomy);
  g_chunks.roomy = chunk;
}

void unlink_roomy(Page* chunk) {
  Page* next = chunk->next == chunk ? nullptr : as_page(chunk->next);
  chunk->prev->next = chunk->next;
  chunk->next->prev = chunk->prev;
  if (g_chunks.roomy == chunk) g_chunks.roomy = next;
}

// The chunk's last structure in use was given back. Returns whether that arms the scavenger.
bool note_unused(Page* chunk) {
  chunk->cls = current_generation();
  ++g_chunks.unused_count;
  Page* behind = g_chunks.first_unused;
  g_chunks.first_unused = chunk;
  if (EBB_LIKELY(chunk->next == chunk)) return false;
  unlink_roomy(chunk);
  link_roomy(chunk, behind != nullptr ? behind : g_chunks.roomy);
  if (g_chunks.roomy == behind) g_chunks.roomy = chunk;
  if (g_chunks.armed || !heap_structures_wait_locked()) return false;
  if (g_chunks.unused_count < g_arm_threshold_slices.load(std::memory_order_relaxed)) return false;
  g_chunks.armed = true;
  return true;
}

// The unused chunk will have a structure in use, or is not to be given back.
void forget_unused(Page* chunk) {
  --g_chunks.unused_count;
  if (g_chunks.first_unused != chunk) return;
  g_chunks.first_unused = g_chunks.unused_count == 0 ? nullptr : as_page(chunk->next);
}

// A chunk whose memory reads as zero; null when out of memory.
EBB_COLD Page* new_chunk() {
  if (Page* chunk = g_chunks.cold) {
    g_chunks.cold = as_page(chunk->next);
    return chunk;
  }
  bool zero;
  Slice* span = take_span({1}, kSliceBytes, &zero);
  if (span == nullptr) return nullptr;
  if (!zero && !os::purge(span->start, kSliceBytes)) memset(span->start, 0, kSliceBytes);
  span->kind = SliceKind::kMeta;
  Page* chunk = as_page(span);
  chunk->free = nullptr;
  chunk->carved = 0;
  chunk->countdown = 0;
  chunk->heap.store(chunk_mark(), std::memory_order_release);
  return chunk;
}

// Holds the locks of all its structures, so that nobody is looking at one.
bool lock_all(Page* chunk) {
  for (uint32_t i = 0; i < chunk->carved; ++i) {
    if (structure_at(chunk, i)->lock.try_lock()) continue;
    while (i-- > 0) structure_at(chunk, i)->lock.unlock();
    return false;
  }
  return true;
}

// Gives the memory of an unused chunk back. One that somebody looks at waits on, and one that the OS does not take
// waits until it is unused the next time.
void cool(Page* chunk) {
  bool locked = lock_all(chunk);
  bool purged = locked && os::purge(chunk->start, kSliceBytes);
  for (uint32_t i = 0; locked && i < chunk->carved; ++i) {
    Lock& lock = structure_at(chunk, i)->lock;
    purged ? lock.opened_by_purge() : lock.unlock();
  }
  forget_unused(chunk);
  if (!locked) {
    note_unused(chunk);
    return;
  }
  unlink_roomy(chunk);
  if (!purged) return link_roomy_first(chunk);
  chunk->free = nullptr;
  chunk->carved = 0;
  chunk->next = g_chunks.cold;
  g_chunks.cold = chunk;
}

Block* as_block(FirstClassHeap* heap) { return reinterpret_cast<Block*>(heap); }
FirstClassHeap* as_structure(Block* block) { return reinterpret_cast<FirstClassHeap*>(block); }

}  // namespace

FirstClassHeap* heap_structure_take_locked() {
  Page* chunk = g_chunks.roomy;
  if (EBB_UNLIKELY(chunk == nullptr)) {
    chunk = new_chunk();
    if (chunk == nullptr) return nullptr;
    link_roomy_first(chunk);
  }
  FirstClassHeap* heap = as_structure(chunk->free);
  if (EBB_LIKELY(heap != nullptr)) {
    chunk->free = as_block(heap->registry_next);
  } else {
    // Not constructed: its lock may be held for a look.
    heap = structure_at(chunk, chunk->carved++);
    heap->home.classes = make_class_table();
  }
  if (chunk == g_chunks.first_unused) forget_unused(chunk);
  if (++chunk->countdown == kStructures) unlink_roomy(chunk);
  return heap;
}

bool heap_structure_give_locked(FirstClassHeap* heap) {
  uintptr_t offset = reinterpret_cast<uintptr_t>(heap) - reinterpret_cast<uintptr_t>(g_cage.base);
  Page* chunk = as_page(EBB_LIKELY(offset < g_cage.size) ? cage_slice(offset) : find_slice(heap));
  heap->registry_next = as_structure(chunk->free);
  chunk->free = as_block(heap);
  if (chunk->countdown-- == kStructures) link_roomy_first(chunk);
  return chunk->countdown == 0 && note_unused(chunk);
}

bool is_heap_structure(const void* p) {
  const Slice* slice = find_known_slice(p);
  if (slice == nullptr || slice->kind != SliceKind::kMeta) return false;
  const Page* chunk = static_cast<const Page*>(slice);
  if (chunk->heap.load(std::memory_order_acquire) != chunk_mark()) return false;
  size_t offset = static_cast<size_t>(static_cast<const char*>(p) - chunk->start);
  return offset % sizeof(FirstClassHeap) == 0 && offset / sizeof(FirstClassHeap) < kStructures;
}

bool heap_structures_wait_locked() { return g_chunks.unused_count > kKeptUnused; }

bool heap_structures_return_locked(bool forced) {
  // Where huge pages are to stay whole, so are these; in a fork handler all locks seem to be open.
  if ((!forced && option(Option::k_thp) == word::thp_full) || tls_holds_every_lock) return false;
  for (uint32_t left = g_chunks.unused_count; left > (forced ? 0 : kKeptUnused); --left) {
    Page* oldest = as_page(g_chunks.roomy->prev);
    if (!forced && !has_aged(oldest->cls)) break;
    cool(oldest);
  }
  g_chunks.armed = false;
  return heap_structures_wait_locked();
}

void heap_structures_after_fork_locked() {
  g_chunks.armed = false;
  for (Page* chunk = g_chunks.roomy; chunk != nullptr; chunk = as_page(chunk->next)) {
    for (FirstClassHeap* heap = as_structure(chunk->free); heap != nullptr; heap = heap->registry_next) {
      heap->lock.open_after_fork();
    }
    if (chunk->next == g_chunks.roomy) break;
  }
  // What a purge can't open, as the OS refuses it, was written by nobody since the last one but for a look.
  for (Page* chunk = g_chunks.cold; chunk != nullptr; chunk = as_page(chunk->next)) {
    if (!os::purge(chunk->start, kSliceBytes)) memset(chunk->start, 0, kSliceBytes);
  }
}

}  // namespace ebb
