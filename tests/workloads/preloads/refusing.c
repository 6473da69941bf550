/* An allocator for tests that has no memory for the program's own requests: they are large here. */
#include <stddef.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);
extern void __libc_free(void* block);

enum { kRefusedFrom = 4000 };

void* malloc(size_t size) { return size >= kRefusedFrom ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return count * size >= kRefusedFrom ? NULL : __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { return size >= kRefusedFrom ? NULL : __libc_realloc(block, size); }
void free(void* block) { __libc_free(block); }
