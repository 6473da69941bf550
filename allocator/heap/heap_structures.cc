// A chunk's books are kept in its entry of the slice table, in the fields of a page of blocks:
//   free       structures that were given back, linked by registry_next
//   carved     structures that were made
//   countdown  structures in use
//   next, prev the list of chunks with room; of cold chunks, by next alone
#include "heap/heap_structures.h"

#include <cstring>

#include "arena/cage.h"
#include "base/check.h"
#include "os/os.h"

namespace ebb {
namespace {

constexpr uint16_t kStructures = kSliceBytes / sizeof(FirstClassHeap);

struct Chunks {
  Page* roomy = nullptr;   // with unused structures, made or not
  Page* unused = nullptr;  // one of them, with none in use
  Page* cold = nullptr;    // without memory
};
constinit Chunks g_chunks;

FirstClassHeap* structure_at(const Page* chunk, uint32_t i) {
  return reinterpret_cast<FirstClassHeap*>(chunk->start + i * sizeof(FirstClassHeap));
}

void link_roomy(Page* chunk) {
  chunk->prev = nullptr;
  chunk->next = g_chunks.roomy;
  if (g_chunks.roomy != nullptr) g_chunks.roomy->prev = chunk;
  g_chunks.roomy = chunk;
}

void unlink_roomy(Page* chunk) {
  if (chunk->next != nullptr) chunk->next->prev = chunk->prev;
  (chunk->prev != nullptr ? chunk->prev->next : reinterpret_cast<Slice*&>(g_chunks.roomy)) = chunk->next;
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

// Gives the memory of a chunk with no structure in use back. One that somebody looks at, or that the OS does not
// take, is used on as it is.
EBB_COLD void cool(Page* chunk) {
  if (tls_holds_every_lock || !lock_all(chunk)) return;
  bool purged = os::purge(chunk->start, kSliceBytes);
  for (uint32_t i = 0; i < chunk->carved; ++i) {
    Lock& lock = structure_at(chunk, i)->lock;
    purged ? lock.opened_by_purge() : lock.unlock();
  }
  if (!purged) return;
  unlink_roomy(chunk);
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
    link_roomy(chunk);
  }
  FirstClassHeap* heap = as_structure(chunk->free);
  if (EBB_LIKELY(heap != nullptr)) {
    chunk->free = as_block(heap->registry_next);
  } else {
    // Not constructed: its lock may be held for a look.
    heap = structure_at(chunk, chunk->carved++);
    heap->home.classes = make_class_table();
  }
  if (chunk == g_chunks.unused) g_chunks.unused = nullptr;
  if (++chunk->countdown == kStructures) unlink_roomy(chunk);
  return heap;
}

void heap_structure_give_locked(FirstClassHeap* heap) {
  uintptr_t offset = reinterpret_cast<uintptr_t>(heap) - reinterpret_cast<uintptr_t>(g_cage.base);
  Page* chunk = as_page(EBB_LIKELY(offset < g_cage.size) ? cage_slice(offset) : find_slice(heap));
  heap->registry_next = as_structure(chunk->free);
  chunk->free = as_block(heap);
  if (chunk->countdown-- == kStructures) link_roomy(chunk);
  if (EBB_LIKELY(chunk->countdown != 0)) return;
  if (g_chunks.unused == nullptr) {
    g_chunks.unused = chunk;
  } else {
    cool(chunk);
  }
}

void heap_structures_after_fork_locked() {
  for (Page* chunk = g_chunks.roomy; chunk != nullptr; chunk = as_page(chunk->next)) {
    for (FirstClassHeap* heap = as_structure(chunk->free); heap != nullptr; heap = heap->registry_next) {
      heap->lock.open_after_fork();
    }
  }
  // What a purge can't open, as the OS refuses it, was written by nobody since the last one but for a look.
  for (Page* chunk = g_chunks.cold; chunk != nullptr; chunk = as_page(chunk->next)) {
    if (!os::purge(chunk->start, kSliceBytes)) memset(chunk->start, 0, kSliceBytes);
  }
}

}  // namespace ebb
