/* A stand-in for Ebb in tests: libc's malloc behind Ebb's names, with a count of the calls that a workload makes.
 *
 * At exit it writes the counts to the descriptor that CALLS_FD names.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void __libc_free(void* block);

enum { kHeapBlocksMax = 4096 };

struct heap {
  size_t count;
  void* blocks[kHeapBlocksMax];
};

static atomic_long heaps_new, heaps_destroyed, collects, parks, unparks, heaps_deleted;

void* malloc(size_t size) { return __libc_malloc(size); }
void free(void* block) { __libc_free(block); }

const char* ebb_version(void) { return "stand-in"; }

void* ebb_heap_new(void) {
  ++heaps_new;
  struct heap* heap = __libc_malloc(sizeof *heap);
  heap->count = 0;
  return heap;
}

void* ebb_heap_malloc(void* heap, size_t size) {
  struct heap* into = heap;
  if (into->count == kHeapBlocksMax) return NULL;
  return into->blocks[into->count++] = __libc_malloc(size);
}

void ebb_heap_destroy(void* heap) {
  ++heaps_destroyed;
  struct heap* dead = heap;
  while (dead->count != 0) __libc_free(dead->blocks[--dead->count]);
  __libc_free(dead);
}

/* Every block is libc's own, so those that live on need nothing. */
void ebb_heap_delete(void* heap) {
  ++heaps_deleted;
  __libc_free(heap);
}

void ebb_collect(bool force) {
  (void)force;
  ++collects;
}

bool ebb_park_begin(void) {
  ++parks;
  return parks % 2 == 0;
}

void ebb_park_end(void) { ++unparks; }

__attribute__((destructor)) static void report(void) {
  const char* descriptor = getenv("CALLS_FD");
  if (descriptor == NULL) return;
  dprintf(atoi(descriptor), "%ld %ld %ld %ld %ld %ld\n", heaps_new, heaps_destroyed, collects, parks, unparks,
          heaps_deleted);
}
