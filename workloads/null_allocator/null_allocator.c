/* An allocator that does nothing: every block is the same one, and free forgets.
 *
 * Preload it under `churn --check no` to learn what the loop itself costs; the difference to a real
 * allocator is the allocator. Valid only where nobody looks into a block, and nowhere else. Only malloc
 * and free are replaced: libc keeps its own for what it allocates through calloc and realloc.
 */
#include <stddef.h>

static char block[64] __attribute__((aligned(64)));

void* malloc(size_t size) {
  (void)size;
  return block;
}

void free(void* pointer) { (void)pointer; }
