// 40: A library is loaded, allocates, and is unloaded more often than there are thread-specific keys;
// address space and keys must not run out. Argument: the library's path, and optionally the names of its
// malloc and free, when the library is the allocator itself.
#include "case.h"
#include <dlfcn.h>

typedef void* (*allocate_function)(size_t);
typedef void (*free_function)(void*);

static void load_once(const char* path, const char* allocate, const char* release) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT(library, "%s", dlerror());
  if (allocate) {
    allocate_function take = (allocate_function)dlsym(library, allocate);
    free_function give = (free_function)dlsym(library, release);
    EXPECT(take && give, "%s has no %s and %s", path, allocate, release);
    static void* blocks[1024];
    for (int i = 0; i < 1024; ++i) memset(blocks[i] = take(1024), i, 1024);
    for (int i = 0; i < 1024; ++i) give(blocks[i]);
  }
  dlclose(library);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2 || argc == 4, "usage: dlclose_loop LIBRARY [MALLOC FREE]");
  const char* allocate = argc == 4 ? argv[2] : NULL;
  const char* release = argc == 4 ? argv[3] : NULL;
  for (int i = 0; i < 50; ++i) load_once(argv[1], allocate, release);
  size_t mapped = status_bytes("VmSize");
  for (int i = 0; i < 1100; ++i) load_once(argv[1], allocate, release);
  size_t after = status_bytes("VmSize");
  EXPECT(after <= mapped + 4 * MIB, "1100 rounds left %zu KiB mapped", (after - mapped) / KIB);
  pthread_key_t key;
  EXPECT(pthread_key_create(&key, NULL) == 0, "no thread-specific key is left after 1100 rounds");
  return 0;
}
