// A program of C, which has no C++ runtime. Without an argument it calls operator new by its symbol for more than
// there is. With one it loads the C++ library of that name into a scope of its own, as interpreters load extension
// modules, and calls its entry.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc == 1) {
    void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
    void (*release)(void*) = (void (*)(void*))dlsym(RTLD_DEFAULT, "_ZdlPv");
    if (allocate == NULL || release == NULL) return 3;
    release(allocate(100));
    void* (*quiet)(size_t, const void*) = (void* (*)(size_t, const void*))dlsym(RTLD_DEFAULT, "_ZnwmRKSt9nothrow_t");
    if (quiet == NULL || quiet((size_t)1 << 50, "") != NULL) return 4;
    puts("the nothrow form gives null");
    fflush(stdout);
    allocate((size_t)1 << 50);
    return 5;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  int (*entry)(void) = (int (*)(void))dlsym(library, "plugin_entry");
  return entry == NULL ? 4 : entry();
}
