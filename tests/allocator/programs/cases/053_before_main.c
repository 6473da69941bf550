// 53: The first allocations happen in an IFUNC resolver, in .preinit_array, and in the growth of the
// atexit table by 200 registrations of an early constructor, before any constructor of the allocator.
#include "case.h"

static void* early_block;
static int handlers_run;

static void handler(void) { ++handlers_run; }

#ifndef NO_IFUNC
static int implementation(void) { return 7; }

static int (*resolve_implementation(void))(void) {
  void* p = malloc(100);
  if (p) memset(p, 1, 100);
  free(p);
  return implementation;
}
int chosen(void) __attribute__((ifunc("resolve_implementation")));
#else
static int chosen(void) { return 7; }
#endif

static void before_constructors(int argc, char** argv, char** environment) {
  (void)argc, (void)argv, (void)environment;
  early_block = malloc(3000);
  memset(early_block, 3, 3000);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char**, char**) = before_constructors;

__attribute__((constructor(101))) static void register_handlers(void) {
  for (int i = 0; i < 200; ++i) EXPECT(atexit(handler) == 0, "atexit refuses handler %d", i);
}

int main(void) {
  EXPECT(chosen() == 7, "the resolver's choice was lost");
  EXPECT(early_block, "no memory in .preinit_array");
  for (int i = 0; i < 3000; ++i) EXPECT(((char*)early_block)[i] == 3, "the early block was overwritten");
  early_block = realloc(early_block, 100000);
  EXPECT(early_block, "an early block cannot be reallocated");
  free(early_block);
  return 0;
}
