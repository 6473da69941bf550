/* An allocator that does nothing: every block is the same one, and free forgets.
 *
 * Linked into churn_loop, which so counts what the loop of churn costs by itself. Valid only where nobody
 * looks into a block. Only malloc and free are replaced: what libc allocates through calloc and realloc
 * stays its own.
 */
#include <stddef.h>

static char block[64] __attribute__((aligned(64)));

void* malloc(size_t size) {
  (void)size;
  return block;
}

void free(void* pointer) { (void)pointer; }
