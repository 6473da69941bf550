// 55: Each function that hands out a block, as the program's first allocator call or after a malloc, must
// be served by the allocator whose malloc_usable_size, realloc and free then get the block.
// Arguments: the producer's name, and `first` or `later`.
#include "case.h"
#include <dirent.h>
#include <dlfcn.h>
#include <wchar.h>

static void* from_malloc(void) { return malloc(100); }
static void* from_calloc(void) { return calloc(10, 10); }
static void* from_realloc(void) { return realloc(NULL, 100); }
static void* from_reallocarray(void) { return reallocarray(NULL, 10, 10); }
static void* from_memalign(void) { return memalign(256, 100); }
static void* from_aligned_alloc(void) { return aligned_alloc(64, 128); }
static void* from_valloc(void) { return valloc(100); }
static void* from_pvalloc(void) { return pvalloc(100); }
static void* from_strdup(void) { return strdup("a string to be copied"); }
static void* from_strndup(void) { return strndup("a string to be copied", 8); }
static void* from_wcsdup(void) { return wcsdup(L"a wide string to be copied"); }
static void* from_realpath(void) { return realpath("/proc/self", NULL); }
static void* from_getcwd(void) { return getcwd(NULL, 0); }

static void* from_posix_memalign(void) {
  void* p = NULL;
  return posix_memalign(&p, 4096, 100) == 0 ? p : NULL;
}

static void* from_asprintf(void) {
  char* text = NULL;
  return asprintf(&text, "%d and %s", 42, "some text") > 0 ? text : NULL;
}

static void* from_getline(void) {
  char* line = NULL;
  size_t capacity = 0;
  FILE* file = fopen("/proc/self/status", "r");
  ssize_t length = getline(&line, &capacity, file);
  fclose(file);
  return length > 0 ? line : NULL;
}

static void* from_scandir(void) {
  struct dirent** names = NULL;
  int count = scandir("/", &names, NULL, alphasort);
  for (int i = 0; i < count; ++i) free(names[i]);
  return count > 0 ? names : NULL;
}

static void* from_open_memstream(void) {
  char* text = NULL;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  for (int i = 0; i < 1000; ++i) fprintf(stream, "%d ", i);
  fclose(stream);
  return text;
}

static void* from_libc_symbol(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  EXPECT(function, "no symbol %s", name);
  if (strcmp(name, "__libc_memalign") == 0) return ((void* (*)(size_t, size_t))function)(64, 100);
  if (strcmp(name, "__libc_calloc") == 0) return ((void* (*)(size_t, size_t))function)(10, 10);
  return ((void* (*)(size_t))function)(100);
}
static void* from_libc_malloc(void) { return from_libc_symbol("__libc_malloc"); }
static void* from_libc_calloc(void) { return from_libc_symbol("__libc_calloc"); }
static void* from_libc_memalign(void) { return from_libc_symbol("__libc_memalign"); }

static const struct {
  const char* name;
  void* (*produce)(void);
} kProducers[] = {
    {"malloc", from_malloc},
    {"calloc", from_calloc},
    {"realloc", from_realloc},
    {"reallocarray", from_reallocarray},
    {"memalign", from_memalign},
    {"aligned_alloc", from_aligned_alloc},
    {"posix_memalign", from_posix_memalign},
    {"valloc", from_valloc},
    {"pvalloc", from_pvalloc},
    {"strdup", from_strdup},
    {"strndup", from_strndup},
    {"wcsdup", from_wcsdup},
    {"asprintf", from_asprintf},
    {"getline", from_getline},
    {"realpath", from_realpath},
    {"getcwd", from_getcwd},
    {"scandir", from_scandir},
    {"open_memstream", from_open_memstream},
    {"__libc_malloc", from_libc_malloc},
    {"__libc_calloc", from_libc_calloc},
    {"__libc_memalign", from_libc_memalign},
};

int main(int argc, char** argv) {
  EXPECT(argc == 3, "usage: producers NAME first|later");
  if (strcmp(argv[2], "later") == 0) free(opaque(malloc(200)));
  for (size_t i = 0; i < sizeof kProducers / sizeof *kProducers; ++i) {
    if (strcmp(argv[1], kProducers[i].name) != 0) continue;
    char* block = (char*)kProducers[i].produce();
    EXPECT(block, "%s gives no block", argv[1]);
    size_t usable = malloc_usable_size(block);
    EXPECT(usable >= 8 && usable < MIB, "%s gives a block of %zu usable bytes", argv[1], usable);
    char first = block[0];
    block = (char*)realloc(block, usable + 5000);
    EXPECT(block && block[0] == first, "%s: realloc lost the block", argv[1]);
    free(block);
    return 0;
  }
  EXPECT(0, "no producer %s", argv[1]);
}
