// 34: posix_spawn and raw clone make children past the fork handlers while other threads allocate. Spawned programs
// always run; a cloned child may find a lock held for ever (which ends it here), but what it reads is whole, and
// neither harms the parent.
#include "case.h"
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { kThreads = 3, kBlocks = 300, kChildren = 20, kMostStuck = kChildren / 2 };

extern char** environ;
static volatile int stop;

static void* churn(void* seed) {
  static __thread void* blocks[kBlocks];
  static __thread size_t sizes[kBlocks];
  uint64_t random = (uint64_t)(uintptr_t)seed;
  while (!stop) {
    size_t i = next_random(&random) % kBlocks;
    if (blocks[i]) {
      check_pattern(blocks[i], sizes[i]);
      free(blocks[i]);
    }
    sizes[i] = 16 + next_random(&random) % (i % 16 ? 2000 : 200000);
    blocks[i] = malloc(sizes[i]);
    EXPECT(blocks[i], "no memory");
    fill_pattern(blocks[i], sizes[i]);
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  return NULL;
}

static void spawn_one(void) {
  char* arguments[] = {(char*)"true", NULL};
  pid_t child;
  int error = posix_spawnp(&child, "true", NULL, NULL, arguments, environ);
  EXPECT(error == 0, "posix_spawn: error %d", error);
  expect_child_succeeds(child);
}

// Whether the child ended by itself.
static int clone_one(void* block, size_t size) {
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  EXPECT(child >= 0, "clone: errno %d", errno);
  if (child == 0) {
    struct itimerval limit = {{0, 0}, {0, 100 * 1000}};
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &limit, NULL);
    check_pattern(block, size);
    for (int i = 0; i < 50; ++i) free(opaque(malloc((size_t)i * 40 + 1)));
    _exit(0);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child, "waitpid failed: errno %d", errno);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return 0;
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a cloned child ended with status %#x", status);
  return 1;
}

int main(void) {
  arm_watchdog(60);
  pthread_t threads[kThreads];
  void* block = malloc(5000);
  fill_pattern(block, 5000);
  for (uintptr_t i = 0; i < kThreads; ++i)
    EXPECT(pthread_create(&threads[i], NULL, churn, (void*)(i + 1)) == 0, "no thread");
  int stuck = 0;
  for (int i = 0; i < kChildren; ++i) {
    if (i % 4 == 0) spawn_one();
    stuck += !clone_one(block, 5000);
  }
  stop = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  check_pattern(block, 5000);
  EXPECT(stuck <= kMostStuck, "%d of %d cloned children were stuck", stuck, kChildren);
  printf("%d of %d cloned children were stuck\n", stuck, kChildren);
  return 0;
}
