// Preloaded beside the allocator: munmap and madvise that allocate before they make the system call, as
// the registration caches of MPI and RDMA libraries do (case 50).
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void allocate_some(void) {
  // The guard ends the recursion of an allocator that calls munmap or madvise for these very blocks.
  static __thread int inside;
  if (inside) return;
  inside = 1;
  void* small = malloc(77);
  void* large = malloc(150000);
  if (small) memset(small, 1, 77);
  if (large) memset(large, 1, 150000);
  free(small);
  free(large);
  inside = 0;
}

int munmap(void* address, size_t length) {
  allocate_some();
  return (int)syscall(SYS_munmap, address, length);
}

int madvise(void* address, size_t length, int advice) {
  allocate_some();
  return (int)syscall(SYS_madvise, address, length, advice);
}
