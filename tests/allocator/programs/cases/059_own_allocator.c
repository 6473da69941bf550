// 59: The program brings malloc, calloc, realloc and free of its own but not the other entry points, which
// a preloaded allocator then serves. Blocks it does not know must be recognised, never written into.
#include "case.h"

static const size_t kArenaBytes = 4 << 20;
static char* arena;
static size_t used;

// A bump allocator with a size in front of each block; never gives memory back.
void* malloc(size_t size) {
  if (!arena)
    arena = (char*)mmap(NULL, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  size_t start = used + 16;
  if (size > kArenaBytes - start) return NULL;
  used = (start + size + 15) & ~(size_t)15;
  memcpy(arena + start - 16, &size, sizeof size);
  return arena + start;
}

static int is_own(const void* p) { return arena && (const char*)p >= arena && (const char*)p < arena + kArenaBytes; }

void free(void* p) { (void)p; }

void* calloc(size_t count, size_t size) {
  void* p = malloc(count * size);
  return p ? memset(p, 0, count * size) : NULL;
}

void* realloc(void* old, size_t size) {
  void* p = malloc(size);
  if (!p || !old) return p;
  size_t old_size = is_own(old) ? ((size_t*)old)[-2] : malloc_usable_size(old);
  return memcpy(p, old, old_size < size ? old_size : size);
}

int main(void) {
  char* own = strdup("served by the program itself");
  EXPECT(is_own(own), "strdup was not served by the program's malloc");
  void* aligned = NULL;
  EXPECT(posix_memalign(&aligned, 4096, 10000) == 0 && (uintptr_t)aligned % 4096 == 0, "no aligned block");
  memset(aligned, 9, 10000);
  char* grown = (char*)realloc(aligned, 20000);
  EXPECT(grown && grown[9999] == 9, "a block of the preload was lost");
  free(aligned);

  static char copy[4096];
  memcpy(copy, arena, sizeof copy);
  pid_t child = fork();
  if (child == 0) {
    // Zero, or a report that stops the program: both are an answer about a block of somebody else's.
    size_t usable = malloc_usable_size(own);
    _exit(usable == 0 ? 0 : 2);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child, "no child");
  int reported = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  EXPECT(reported || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "usable size of a foreign block: status %#x",
         (unsigned)status);
  EXPECT(memcmp(copy, arena, sizeof copy) == 0, "the preload wrote into a block of the program's");
  return 0;
}
