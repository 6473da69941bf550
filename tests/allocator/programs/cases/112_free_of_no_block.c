// 112: Freeing what is no block (an interior, stack, static or mapped address, a small number) is reported
// and ends the program in the checked build; also realloc and malloc_usable_size of it.
// Arguments: the operation (free, realloc, usable) and the pointer's kind.
#include "case.h"

static char static_bytes[256] __attribute__((aligned(64)));

static void* pointer_of(const char* kind) {
  char stack_bytes[256] __attribute__((aligned(64)));
  if (strcmp(kind, "small_interior") == 0) return (char*)malloc(200) + 16;
  if (strcmp(kind, "large_interior") == 0) return (char*)malloc(500000) + 4096;
  if (strcmp(kind, "huge_interior") == 0) return (char*)malloc(100 * MIB) + 65536;
  if (strcmp(kind, "stack") == 0) return opaque(stack_bytes + 64);
  if (strcmp(kind, "static") == 0) return static_bytes + 64;
  if (strcmp(kind, "mapped") == 0)
    return (char*)mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 64;
  EXPECT(strcmp(kind, "number") == 0, "no kind %s", kind);
  return opaque((void*)0x10);
}

int main(int argc, char** argv) {
  EXPECT(argc == 3, "usage: free_of_no_block OPERATION KIND");
  free(opaque(malloc(100)));
  void* pointer = opaque(pointer_of(argv[2]));
  if (strcmp(argv[1], "free") == 0) free(pointer);
  if (strcmp(argv[1], "realloc") == 0) opaque(realloc(pointer, 5000));
  if (strcmp(argv[1], "usable") == 0) dprintf(1, "%zu\n", malloc_usable_size(pointer));
  // A block that was freed in the middle must not be handed out again.
  for (int i = 0; i < 1000; ++i) memset(opaque(malloc(200)), 1, 200);
  return 0;
}
