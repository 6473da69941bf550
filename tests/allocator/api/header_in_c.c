/* ebb.h is a C header: every function is used here as a C program does. Called by allocate_test.cc. */
#include <ebb/ebb.h>
#include <string.h>

int ebb_header_works_in_c(void);

static int works_with_blocks(void) {
  char* p = ebb_malloc(10);
  char* zeroed = ebb_calloc(2, 5);
  if (p == NULL || zeroed == NULL || zeroed[9] != 0) return 0;
  p = ebb_realloc(p, 100);
  p = ebb_reallocarray(p, 20, 10);
  if (p == NULL || ebb_usable_size(p) < 200 || ebb_good_size(200) < 200) return 0;
  ebb_free(p);
  ebb_free_sized(zeroed, 10);
  return 1;
}

static int works_with_alignments(void) {
  void* p = ebb_aligned_alloc(64, 100);
  void* q = NULL;
  if (p == NULL || ebb_posix_memalign(&q, 128, 100) != 0) return 0;
  q = ebb_aligned_realloc(q, 256, 300);
  if (q == NULL || (uintptr_t)q % 256 != 0) return 0;
  ebb_free_aligned_sized(p, 64, 100);
  ebb_free(q);
  return 1;
}

static void ignore(const char* line, void* arg) {
  (void)line;
  (void)arg;
}

int ebb_header_works_in_c(void) {
  int64_t value = -1;
  ebb_stats_t stats;
  char text[16];
  if (!works_with_blocks() || !works_with_alignments()) return 0;
  if (!ebb_option_get("purge_delay_ms", &value) || !ebb_option_set("purge_delay_ms", value)) return 0;
  if (!ebb_stats_get(&stats, sizeof stats) || ebb_stats_json(text, sizeof text) < sizeof text) return 0;
  ebb_stats_print(ignore, NULL);
  ebb_collect(false);
  ebb_collect(true);
  return strlen(ebb_version()) >= 5;
}
