// Preloaded beside the allocator: dl_iterate_phdr and pthread_create that find the real ones by dlsym,
// whose failure path allocates in dlerror (case 52).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>

typedef int (*iterate_function)(int (*)(struct dl_phdr_info*, size_t, void*), void*);
typedef int (*create_function)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info*, size_t, void*), void* data) {
  dlsym(RTLD_NEXT, "no_such_symbol");
  dlerror();
  return ((iterate_function)dlsym(RTLD_NEXT, "dl_iterate_phdr"))(callback, data);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  dlsym(RTLD_NEXT, "no_such_symbol");
  dlerror();
  return ((create_function)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, start, argument);
}
