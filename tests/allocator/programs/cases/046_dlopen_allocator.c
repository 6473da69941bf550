// 46: The allocator's library is loaded by dlopen, after other libraries have used up much of the static
// TLS block; it must find room, and work. Arguments: libraries to load first, the allocator, and the
// names of its malloc and free.
#include "case.h"
#include <dlfcn.h>

int main(int argc, char** argv) {
  EXPECT(argc >= 4, "usage: dlopen_allocator [LIBRARY]... ALLOCATOR MALLOC FREE");
  for (int i = 1; i < argc - 3; ++i) EXPECT(dlopen(argv[i], RTLD_NOW), "%s", dlerror());
  void* allocator = dlopen(argv[argc - 3], RTLD_NOW);
  EXPECT(allocator, "%s", dlerror());
  void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(allocator, argv[argc - 2]);
  void (*release)(void*) = (void (*)(void*))dlsym(allocator, argv[argc - 1]);
  EXPECT(allocate && release, "no %s and %s in %s", argv[argc - 2], argv[argc - 1], argv[argc - 3]);
  for (size_t size = 1; size < 4 * MIB; size = size * 3 + 1) {
    char* p = (char*)allocate(size);
    EXPECT(p, "no %zu bytes", size);
    memset(p, 1, size);
    release(p);
  }
  return 0;
}
