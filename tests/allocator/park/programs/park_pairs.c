/* Parks and comes back again and again with nothing to hand over: park_pairs <pairs> [mib].
 *
 * With a second argument the thread first fills so many MiB and frees them, and only the first park, which has all of
 * it to hand over, lies in what is looked at. The system calls getppid and getuid stand at its begin and its end. */
#include <ebb/ebb.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void fill_and_free(size_t mib) {
  enum { kBytes = 2000 };
  size_t count = (mib << 20) / kBytes;
  void** blocks = ebb_malloc(count * sizeof *blocks);
  for (size_t i = 0; i < count; ++i) blocks[i] = memset(ebb_malloc(kBytes), 1, kBytes);
  /* One in eight stays, so that pages must be punched. */
  for (size_t i = 0; i < count; ++i) {
    if (i % 8 != 0) ebb_free(blocks[i]);
  }
}

static unsigned long sweeps(void) {
  static char text[1 << 16];
  ebb_stats_json(text, sizeof text);
  const char* at = strstr(text, "\"sweeps\":");
  if (at == NULL) {
    fputs("the statistics have no count of sweeps\n", stderr);
    exit(1);
  }
  return strtoul(at + strlen("\"sweeps\":"), NULL, 10);
}

static void* wait_for_a_sweep(void* ignored) {
  struct timespec pause = {0, 5 * 1000 * 1000};
  (void)ignored;
  while (sweeps() == 0) nanosleep(&pause, NULL);
  return NULL;
}

/* Parks until the thread has been swept: from then on there is nothing to do for it. Another thread looks, as looking
 * at the statistics is work, too. */
static void become_idle(void) {
  pthread_t watcher;
  ebb_free(ebb_malloc(100));
  if (pthread_create(&watcher, NULL, wait_for_a_sweep, NULL) != 0) exit(1);
  if (!ebb_park_begin()) {
    fputs("there is no scavenger to hand heaps over to\n", stderr);
    exit(1);
  }
  pthread_join(watcher, NULL);
  ebb_park_end();
}

int main(int argc, char** argv) {
  int pairs = argc > 1 ? atoi(argv[1]) : 0;
  if (argc > 2) {
    fill_and_free((size_t)atoi(argv[2]));
  } else {
    become_idle();
  }
  getppid();
  for (int i = 0; i < pairs; ++i) {
    ebb_park_begin();
    ebb_park_end();
  }
  getuid();
  return 0;
}
