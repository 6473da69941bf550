// Memory on Linux: reservations are PROT_NONE and MAP_NORESERVE, committing is mprotect, purging is
// MADV_DONTNEED (so that RSS shows it at once).
#include <errno.h>
#include <linux/mman.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <atomic>

#include "base/bits.h"
#include "base/check.h"
#include "base/units.h"
#include "os/fault.h"
#include "os/os.h"
#include "os/syscall.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace ebb::os {
namespace {

constinit std::atomic<size_t> g_page_bytes{0};

void* map(void* where, size_t bytes, int protection, int extra_flags) {
  long result = raw_syscall(SYS_mmap, as_long(where), static_cast<long>(bytes), protection,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra_flags, -1, 0);
  return syscall_failed(result) ? nullptr : reinterpret_cast<void*>(result);
}

}  // namespace

#if defined(EBB_TEST_POINTS)
constinit FaultHook g_fault_hook = nullptr;
#endif

size_t page_bytes() {
  size_t bytes = g_page_bytes.load(std::memory_order_relaxed);
  if (EBB_UNLIKELY(bytes == 0)) {
    bytes = getauxval(AT_PAGESZ);
    if (bytes == 0) bytes = 4 * KiB;
    g_page_bytes.store(bytes, std::memory_order_relaxed);
  }
  return bytes;
}

void set_page_bytes_for_test(size_t bytes) { g_page_bytes.store(bytes, std::memory_order_relaxed); }

void* reserve(size_t bytes, size_t alignment) {
  EBB_ASSERT(is_power_of_two(alignment));
  if (bytes > SIZE_MAX - alignment || is_refused_by_test("reserve", nullptr, bytes)) return nullptr;
  // mmap aligns to OS pages only: ask for more and give the ends back.
  size_t slack = alignment > page_bytes() ? alignment - page_bytes() : 0;
  void* mapped = map(nullptr, bytes + slack, PROT_NONE, 0);
  if (mapped == nullptr) return nullptr;
  uintptr_t start = reinterpret_cast<uintptr_t>(mapped);
  uintptr_t aligned = align_up(start, alignment);
  if (aligned > start) release(mapped, aligned - start);
  size_t tail = start + slack - aligned;
  if (tail > 0) release(reinterpret_cast<void*>(aligned + bytes), tail);
  return reinterpret_cast<void*>(aligned);
}

void release(void* start, size_t bytes) { raw_syscall(SYS_munmap, as_long(start), static_cast<long>(bytes)); }

bool commit(void* start, size_t bytes) {
  if (is_refused_by_test("commit", start, bytes)) return false;
  return raw_syscall(SYS_mprotect, as_long(start), static_cast<long>(bytes), PROT_READ | PROT_WRITE) == 0;
}

bool purge(void* start, size_t bytes) {
  if (is_refused_by_test("purge", start, bytes)) return false;
  return raw_syscall(SYS_madvise, as_long(start), static_cast<long>(bytes), MADV_DONTNEED) == 0;
}

bool decommit(void* start, size_t bytes) {
  if (is_refused_by_test("decommit", start, bytes)) return false;
  return map(start, bytes, PROT_NONE, MAP_FIXED) != nullptr;
}

bool renew(void* start, size_t bytes) {
  if (is_refused_by_test("renew", start, bytes)) return false;
  return map(start, bytes, PROT_READ | PROT_WRITE, MAP_FIXED) != nullptr;
}

bool move_pages(void* from, void* to, size_t bytes) {
  if (is_refused_by_test("move_pages", from, bytes)) return false;
  long result = raw_syscall(SYS_mremap, as_long(from), static_cast<long>(bytes), static_cast<long>(bytes),
                            MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, as_long(to));
  return !syscall_failed(result);
}

bool bind_to_node(void* start, size_t bytes, int node) {
  constexpr int kMostNodes = 1024;
  constexpr long kDefaultPolicy = 0, kPreferred = 1;
  if (node >= kMostNodes) return false;
  if (node < 0) {
    raw_syscall(SYS_mbind, as_long(start), static_cast<long>(bytes), kDefaultPolicy, 0, 0, 0);
    return true;
  }
  unsigned long mask[kMostNodes / (8 * sizeof(unsigned long))] = {};
  mask[static_cast<size_t>(node) / (8 * sizeof(unsigned long))] = 1ul << (static_cast<size_t>(node) % (8 * sizeof(unsigned long)));
  long result = raw_syscall(SYS_mbind, as_long(start), static_cast<long>(bytes), kPreferred, as_long(mask), kMostNodes + 1, 0);
  return !syscall_failed(result) || (result == -ENOSYS && node == 0);
}

void advise_huge_pages(void* start, size_t bytes, bool wanted) {
  raw_syscall(SYS_madvise, as_long(start), static_cast<long>(bytes), wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

size_t resident_bytes(void* start, size_t bytes) {
  size_t page = page_bytes();
  size_t resident = 0;
  unsigned char present[1024];
  char* at = static_cast<char*>(start);
  for (char* end = at + bytes; at < end; at += sizeof(present) * page) {
    size_t count = min_of(sizeof(present), div_up(static_cast<size_t>(end - at), page));
    if (raw_syscall(SYS_mincore, as_long(at), static_cast<long>(count * page), as_long(present)) != 0) continue;
    for (size_t i = 0; i < count; ++i) resident += (present[i] & 1u) * page;
  }
  return resident;
}

}  // namespace ebb::os
