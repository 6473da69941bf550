// Memory for the allocator's own structures, carved from slices of their own: each slice holds structures of one
// size. A slice with none in use goes back to its arena when there is room in another one of that size, so what is
// kept follows what is in use.
#include <new>

#include "arena/arena_list.h"
#include "arena/cage.h"
#include "base/bits.h"
#include "base/check.h"

namespace ebb {
namespace {

constexpr size_t kMostBytes = 16 * KiB;

struct FreeBlock {
  FreeBlock* next;
};

// At the start of each slice.
struct alignas(kCacheLine) Chunk {
  FreeBlock* free = nullptr;  // structures that were given back
  char* fresh;                // those from here on were never taken
  uint32_t in_use = 0;
  Chunk* next = nullptr;  // list of chunks of this size with room
  Chunk* prev = nullptr;

  explicit Chunk(char* first) : fresh(first) {}
  char* end() { return reinterpret_cast<char*>(this) + kSliceBytes; }
  bool has_room(size_t bytes) { return free != nullptr || static_cast<size_t>(end() - fresh) >= bytes; }
};
static_assert(sizeof(Chunk) == kCacheLine, "the structures behind it are aligned as it is");

constinit Lock g_lock{LockRank::kMetaPool};
constinit Chunk* g_roomy[kMostBytes / kCacheLine + 1] = {};

Chunk* chunk_of(void* p) { return reinterpret_cast<Chunk*>(align_down(reinterpret_cast<uintptr_t>(p), kSliceBytes)); }

void link(Chunk*& list, Chunk* chunk) {
  chunk->prev = nullptr;
  chunk->next = list;
  if (list != nullptr) list->prev = chunk;
  list = chunk;
}

void unlink(Chunk*& list, Chunk* chunk) {
  if (chunk->next != nullptr) chunk->next->prev = chunk->prev;
  (chunk->prev != nullptr ? chunk->prev->next : list) = chunk->next;
}

void* take_from(Chunk*& list, size_t bytes) {
  Chunk* chunk = list;
  void* block = chunk->free;
  if (block != nullptr) {
    chunk->free = chunk->free->next;
  } else {
    block = chunk->fresh;
    chunk->fresh += bytes;
  }
  ++chunk->in_use;
  if (!chunk->has_room(bytes)) unlink(list, chunk);
  return block;
}

}  // namespace

void* meta_take(size_t bytes) {
  bytes = align_up(bytes, kCacheLine);
  EBB_ASSERT(bytes <= kMostBytes);
  Chunk*& list = g_roomy[bytes / kCacheLine];
  {
    LockGuard guard(g_lock);
    if (list != nullptr) return take_from(list, bytes);
  }
  Slice* span = take_span({1}, kSliceBytes, nullptr);
  if (span == nullptr) return nullptr;
  span->kind = SliceKind::kMeta;
  Chunk* chunk = new (span->start) Chunk(span->start + sizeof(Chunk));
  LockGuard guard(g_lock);
  link(list, chunk);
  return take_from(list, bytes);
}

void meta_give(void* p, size_t bytes) {
  bytes = align_up(bytes, kCacheLine);
  Chunk* chunk = chunk_of(p);
  Chunk*& list = g_roomy[bytes / kCacheLine];
  {
    LockGuard guard(g_lock);
    if (!chunk->has_room(bytes)) link(list, chunk);
    FreeBlock* block = static_cast<FreeBlock*>(p);
    block->next = chunk->free;
    chunk->free = block;
    if (--chunk->in_use != 0 || (list == chunk && chunk->next == nullptr)) return;
    unlink(list, chunk);
  }
  Slice* span = find_slice(chunk);
  span->kind = SliceKind::kUsed;
  arena_of(span)->give(span);
}

void meta_lock_for_fork() { g_lock.lock(); }
void meta_unlock_after_fork() { g_lock.open_after_fork(); }

}  // namespace ebb
