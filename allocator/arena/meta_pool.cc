// Memory for the allocator's own structures, carved from slices of their own and kept for ever; what is given
// back is reused for the same size.
#include "arena/cage.h"
#include "base/bits.h"
#include "base/check.h"

namespace ebb {
namespace {

constexpr size_t kMostBytes = 16 * KiB;

struct FreeBlock {
  FreeBlock* next;
};

constinit Lock g_lock{LockRank::kMetaPool};
constinit FreeBlock* g_free[kMostBytes / kCacheLine + 1] = {};
constinit char* g_fresh = nullptr;
constinit char* g_fresh_end = nullptr;

}  // namespace

void* meta_take(size_t bytes) {
  bytes = align_up(bytes, kCacheLine);
  EBB_ASSERT(bytes <= kMostBytes);
  {
    LockGuard guard(g_lock);
    FreeBlock*& head = g_free[bytes / kCacheLine];
    if (head != nullptr) {
      FreeBlock* block = head;
      head = block->next;
      return block;
    }
    if (static_cast<size_t>(g_fresh_end - g_fresh) >= bytes) {
      char* block = g_fresh;
      g_fresh += bytes;
      return block;
    }
  }
  // A new slice; what is left of the old one is lost, less than kMostBytes in kSliceBytes.
  Slice* span = take_span({1}, kSliceBytes, nullptr);
  if (span == nullptr) return nullptr;
  span->kind = SliceKind::kMeta;
  LockGuard guard(g_lock);
  g_fresh = span->start + bytes;
  g_fresh_end = span->start + kSliceBytes;
  return span->start;
}

void meta_give(void* p, size_t bytes) {
  bytes = align_up(bytes, kCacheLine);
  LockGuard guard(g_lock);
  FreeBlock* block = static_cast<FreeBlock*>(p);
  block->next = g_free[bytes / kCacheLine];
  g_free[bytes / kCacheLine] = block;
}

void meta_lock_for_fork() { g_lock.lock(); }
void meta_unlock_after_fork() { g_lock.open_after_fork(); }

}  // namespace ebb
