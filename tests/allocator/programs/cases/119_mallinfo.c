// 119: mallinfo2 follows what the program holds, mallinfo gives its int fields without nonsense, and the
// other introspection and tuning calls of glibc answer for this allocator.
#include "case.h"

int main(void) {
  enum { kBlocks = 48 };
  const size_t size = 64 * MIB;
  static void* blocks[kBlocks];
  size_t start = mallinfo2().uordblks;
  for (int i = 0; i < kBlocks; ++i) EXPECT((blocks[i] = malloc(size)), "no memory");
  size_t full = mallinfo2().uordblks - start;
  // glibc counts large blocks as mapped, not as arena memory.
  full += mallinfo2().hblkhd;
  EXPECT(full >= kBlocks * size && full < kBlocks * size + 64 * MIB, "mallinfo2 of 3 GiB: %zu MiB", full / MIB);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  struct mallinfo narrow = mallinfo();
  EXPECT(narrow.uordblks != 0 || narrow.hblkhd != 0, "mallinfo shows an empty heap");
  for (int i = 0; i < kBlocks * 2 / 3; ++i) free(blocks[i]);
  size_t rest = mallinfo2().uordblks - start + mallinfo2().hblkhd;
  EXPECT(rest >= size * kBlocks / 3 && rest < size * kBlocks / 3 + 64 * MIB, "mallinfo2 of 1 GiB: %zu MiB",
         rest / MIB);
  char* text = NULL;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  EXPECT(malloc_info(0, stream) == 0, "malloc_info fails");
  fclose(stream);
  EXPECT(length > 20 && strstr(text, "<malloc"), "malloc_info writes no XML: '%.40s'", text);
  free(text);
  EXPECT(malloc_info(1, stdout) != 0, "malloc_info accepts options that do not exist");
  int set = mallopt(M_MMAP_THRESHOLD, 1 << 20);
  EXPECT(set == 0 || set == 1, "mallopt gives %d", set);
  malloc_stats();
  int trimmed = malloc_trim(0);
  EXPECT(trimmed == 0 || trimmed == 1, "malloc_trim gives %d", trimmed);
  return 0;
}
