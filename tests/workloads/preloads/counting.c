/* libc's allocator with a count of requests, for tests that a workload asks for nothing beside what it measures.
 *
 * At exit it writes the number of calls of malloc, calloc and realloc to the descriptor that CALLS_FD names.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);

static atomic_long requests;

void* malloc(size_t size) {
  ++requests;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  ++requests;
  return __libc_calloc(count, size);
}

void* realloc(void* block, size_t size) {
  ++requests;
  return __libc_realloc(block, size);
}

__attribute__((destructor)) static void report(void) {
  const char* descriptor = getenv("CALLS_FD");
  if (descriptor != NULL) dprintf(atoi(descriptor), "%ld\n", requests);
}
