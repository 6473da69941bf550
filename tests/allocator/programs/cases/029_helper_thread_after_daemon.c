// 29: The background thread that returns memory does not survive fork; a daemonised child must purge
// nevertheless, while all its threads are idle.
#include "case.h"

enum { kThreads = 4, kBlocks = 4000 };

static pthread_barrier_t filled, freed;

static void* burst(void* argument) {
  uint64_t random = (uintptr_t)argument + 1;
  char** blocks = (char**)malloc(kBlocks * sizeof *blocks);
  for (int i = 0; i < kBlocks; ++i) {
    size_t size = 200 + next_random(&random) % 6000;
    blocks[i] = (char*)malloc(size);
    EXPECT(blocks[i], "no memory");
    memset(blocks[i], 1, size);
  }
  pthread_barrier_wait(&filled);
  pthread_barrier_wait(&filled);
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  free(blocks);
  pthread_barrier_wait(&freed);
  pause();
  return NULL;
}

// Fills and frees about 50 MB in threads that then sleep; checks that the memory goes back by itself.
static void burst_and_idle(const char* who) {
  pthread_barrier_init(&filled, NULL, kThreads + 1);
  pthread_barrier_init(&freed, NULL, kThreads + 1);
  size_t before = resident_bytes();
  for (uintptr_t i = 0; i < kThreads; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, burst, (void*)i);
    pthread_detach(thread);
  }
  pthread_barrier_wait(&filled);
  size_t peak = resident_bytes();
  EXPECT(peak > before + 30 * MIB, "%s: the burst was not resident", who);
  pthread_barrier_wait(&filled);
  pthread_barrier_wait(&freed);
  EXPECT(falls_below(before + (peak - before) / 3), "%s: %zu of %zu MiB stay resident while all threads are idle", who,
         resident_bytes() / MIB, peak / MIB);
}

int main(void) {
  arm_watchdog(60);
  burst_and_idle("parent");
  pid_t child = fork();
  if (child == 0) {
    arm_watchdog(60);
    burst_and_idle("daemon");
    _exit(0);
  }
  expect_child_succeeds(child);
  return 0;
}
