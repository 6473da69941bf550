/* A broken allocator for tests: now and then it hands out the block that it handed out last, once more.
 *
 * Blocks come from one big reservation and are never reused, so that the overlap is the only fault. The
 * first requests are right, because libc and the dynamic linker make some of their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kAlignment = 16, kRightAtFirst = 12, kEvery = 5 };
static const size_t kReserved = (size_t)1 << 36;

struct header {
  size_t size;
  size_t padding;
};

static _Atomic(char*) base;
static atomic_size_t used;
static atomic_size_t requests;
static _Atomic(void*) last;

static char* reservation(void) {
  char* begin = atomic_load(&base);
  if (begin != NULL) return begin;
  char* fresh = mmap(NULL, kReserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) __builtin_trap();
  if (atomic_compare_exchange_strong(&base, &begin, fresh)) return fresh;
  munmap(fresh, kReserved);
  return begin;
}

static void* fresh_block(size_t alignment, size_t size) {
  const size_t room = (sizeof(struct header) + alignment + size + kAlignment - 1) / kAlignment * kAlignment;
  const uintptr_t at = (uintptr_t)reservation() + atomic_fetch_add(&used, room) + sizeof(struct header);
  void* block = (void*)((at + alignment - 1) / alignment * alignment);
  ((struct header*)block - 1)->size = size;
  return block;
}

static size_t size_of(void* block) { return ((struct header*)block - 1)->size; }

static void* block_or_last(size_t alignment, size_t size) {
  const size_t number = atomic_fetch_add(&requests, 1);
  void* again = atomic_load(&last);
  if (number >= kRightAtFirst && number % kEvery == 0 && again != NULL && size_of(again) >= size &&
      (uintptr_t)again % alignment == 0) {
    return again;
  }
  void* block = fresh_block(alignment, size);
  atomic_store(&last, block);
  return block;
}

void* malloc(size_t size) { return block_or_last(kAlignment, size); }

void free(void* block) { (void)block; }

void* calloc(size_t count, size_t size) {
  void* block = block_or_last(kAlignment, count * size);
#ifdef CALLOC_LEAVES_A_BYTE
  if (size >= 65536) ((char*)block)[0] = 1;
#endif
  return block;
}

void* realloc(void* block, size_t size) {
  void* moved = fresh_block(kAlignment, size);
#ifdef REALLOC_FORGETS
  const size_t keep = 8;
#else
  const size_t keep = size;
#endif
  if (block != NULL) {
    const size_t old = size_of(block);
    const size_t common = old < keep ? old : keep;
    memcpy(moved, block, common);
  }
  return moved;
}

#ifdef MISALIGNS
enum { kOff = 8 };
#else
enum { kOff = 0 };
#endif

void* aligned_alloc(size_t alignment, size_t size) { return (char*)fresh_block(alignment, size + kOff) + kOff; }

int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = (char*)fresh_block(alignment, size + kOff) + kOff;
  return 0;
}

size_t malloc_usable_size(void* block) {
#ifdef USABLE_IS_SHORT
  return size_of(block) - 1;
#else
  return size_of(block);
#endif
}
