// What the case programs share: checks that end the program with a sentence, and figures of the process
// read without allocating. A case exits with 0 when the allocator behaved, with 1 and a sentence when not.
//
// Included by every case, C and C++; pure inline functions.
#ifndef CASE_H
#define CASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

// Ends the process with a sentence unless `condition` holds. Safe in a forked child and under locks:
// dprintf of short text and _exit take no lock that a fork could have left held.
#define EXPECT(condition, ...)                        \
  do {                                                \
    if (!(condition)) {                               \
      dprintf(2, "%s:%d: ", __FILE__, __LINE__);      \
      dprintf(2, __VA_ARGS__);                        \
      dprintf(2, "\n");                               \
      _exit(1);                                       \
    }                                                 \
  } while (0)

// A hung child or thread ends the whole case instead of the test run's patience.
static inline void arm_watchdog(unsigned seconds) { alarm(seconds); }

// Keeps the compiler from dropping or reordering what a block is used for.
static inline void* opaque(void* p) {
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}

// Reads the whole of a small /proc file; returns its length.
static inline size_t read_file(const char* path, char* buffer, size_t capacity) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  EXPECT(fd >= 0, "cannot open %s: errno %d", path, errno);
  size_t length = 0;
  ssize_t got;
  while (length + 1 < capacity && (got = read(fd, buffer + length, capacity - 1 - length)) > 0) length += (size_t)got;
  close(fd);
  buffer[length] = 0;
  return length;
}

// A field of a /proc/self file, such as VmRSS, in bytes.
static inline size_t proc_bytes(const char* path, const char* field) {
  static __thread char buffer[8192];
  read_file(path, buffer, sizeof buffer);
  char* at = strstr(buffer, field);
  EXPECT(at, "no field %s in %s", field, path);
  at += strlen(field) + 1;
  while (*at == ' ' || *at == '\t') ++at;
  size_t kib = 0;
  for (; *at >= '0' && *at <= '9'; ++at) kib = kib * 10 + (size_t)(*at - '0');
  return kib * KIB;
}

static inline size_t status_bytes(const char* field) { return proc_bytes("/proc/self/status", field); }

// Exact resident bytes: VmRSS of status is approximate by some pages for each CPU.
static inline size_t resident_bytes(void) { return proc_bytes("/proc/self/smaps_rollup", "Rss"); }

// Lines of /proc/self/maps.
static inline size_t count_maps(void) {
  static char buffer[1 << 16];
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  EXPECT(fd >= 0, "cannot open maps: errno %d", errno);
  size_t lines = 0;
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0)
    for (ssize_t i = 0; i < got; ++i) lines += buffer[i] == '\n';
  close(fd);
  return lines;
}

// Polls until the resident memory is at most `limit_bytes`; false after a generous while.
static inline int falls_below(size_t limit_bytes) {
  struct timespec pause = {0, 20 * 1000 * 1000};
  for (int i = 0; i < 500; ++i) {
    if (resident_bytes() <= limit_bytes) return 1;
    nanosleep(&pause, NULL);
  }
  return 0;
}

static inline uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

// Fills a block with a pattern of its address, and checks that it is still there.
static inline void fill_pattern(void* p, size_t size) { memset(p, (int)(((uintptr_t)p >> 4) & 0xff), size); }
static inline void check_pattern(const void* p, size_t size) {
  const unsigned char want = (unsigned char)(((uintptr_t)p >> 4) & 0xff);
  const unsigned char* bytes = (const unsigned char*)p;
  for (size_t i = 0; i < size; ++i)
    EXPECT(bytes[i] == want, "block %p of %zu bytes was overwritten at byte %zu", p, size, i);
}

// Waits for `child`, which must exit with 0.
static inline void expect_child_succeeds(pid_t child) {
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child, "waitpid failed: errno %d", errno);
  EXPECT(!WIFSIGNALED(status), "a child died of signal %d", WTERMSIG(status));
  EXPECT(WEXITSTATUS(status) == 0, "a child exited with %d", WEXITSTATUS(status));
}

#endif
