// Preloaded beside the allocator: an mmap that finds the real one by dlsym at its first call, which may
// allocate (case 49).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef void* (*mmap_function)(void*, size_t, int, int, int, off_t);

void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
  static mmap_function real;
  if (!real) {
    free(calloc(1, 64));
    real = (mmap_function)dlsym(RTLD_NEXT, "mmap");
  }
  return real(address, length, protection, flags, fd, offset);
}
