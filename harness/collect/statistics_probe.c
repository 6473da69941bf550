// Asks the allocator inside a measured program for its own statistics, when the harness sends a signal.
//
// Preloaded behind the allocator by harness.collect.providers.statistics and built by harness.build.launcher; nothing
// is asked of the program, which waits at a checkpoint meanwhile. TIDEMARK_STATISTICS=FD,SYMBOL names where the answer
// goes and the allocator's function `size_t SYMBOL(char *buffer, size_t capacity)` that writes one JSON object, which
// may be empty: then mallctl (jemalloc) or mallinfo2 (glibc) is asked, and `{}` answers for an allocator with neither.
// A function counts only where the object that provides malloc defines it.
//
// Invariant: the handler allocates nothing and answers every signal with exactly one line.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kCapacity = 1 << 18 };

typedef size_t (*WriteJson)(char *buffer, size_t capacity);
typedef int (*Mallctl)(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
typedef struct mallinfo2 (*Mallinfo)(void);

static char answer[kCapacity];
static int answer_fd = -1;
static WriteJson write_json;
static Mallctl ask_mallctl;
static Mallinfo ask_mallinfo;

static const char *const kJemallocLevels[] = {"allocated", "active", "metadata", "resident", "mapped", "retained"};

static void *defined_with_malloc(const char *symbol) {
  Dl_info provider, owner;
  void *address = symbol[0] == '\0' ? NULL : dlsym(RTLD_DEFAULT, symbol);
  if (address == NULL || dladdr(address, &owner) == 0) return NULL;
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &provider) == 0) return NULL;
  return provider.dli_fbase == owner.dli_fbase ? address : NULL;
}

static size_t from_mallctl(void) {
  uint64_t epoch = 1;
  ask_mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
  size_t length = 0;
  for (size_t i = 0; i < sizeof kJemallocLevels / sizeof kJemallocLevels[0]; i++) {
    char name[64];
    size_t value = 0, size = sizeof value;
    snprintf(name, sizeof name, "stats.%s", kJemallocLevels[i]);
    if (ask_mallctl(name, &value, &size, NULL, 0) != 0) continue;
    length += (size_t)snprintf(answer + length, kCapacity - length, "%s\"%s_bytes\": %zu", length == 0 ? "{" : ", ",
                               kJemallocLevels[i], value);
  }
  if (length == 0) return (size_t)snprintf(answer, kCapacity, "{}");
  answer[length++] = '}';
  return length;
}

static size_t from_mallinfo(void) {
  const struct mallinfo2 info = ask_mallinfo();
  return (size_t)snprintf(answer, kCapacity,
                          "{\"live_bytes\": %zu, \"free_bytes\": %zu, \"heap_bytes\": %zu, \"mapped_bytes\": %zu}",
                          info.uordblks + info.hblkhd, info.fordblks, info.arena, info.hblkhd);
}

static void on_signal(int number) {
  (void)number;
  const int saved = errno;
  size_t length;
  if (write_json != NULL) {
    length = write_json(answer, kCapacity - 1);
    if (length > kCapacity - 2) length = kCapacity - 2;
  } else if (ask_mallctl != NULL) {
    length = from_mallctl();
  } else if (ask_mallinfo != NULL) {
    length = from_mallinfo();
  } else {
    length = (size_t)snprintf(answer, kCapacity, "{}");
  }
  answer[length++] = '\n';
  for (size_t done = 0; done < length;) {
    const ssize_t written = write(answer_fd, answer + done, length - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += (size_t)written;
  }
  errno = saved;
}

__attribute__((constructor)) static void start(void) {
  const char *words = getenv("TIDEMARK_STATISTICS");
  if (words == NULL) return;
  char *comma;
  answer_fd = (int)strtol(words, &comma, 10);
  if (*comma != ',') return;
  write_json = (WriteJson)defined_with_malloc(comma + 1);
  ask_mallctl = (Mallctl)defined_with_malloc("mallctl");
  ask_mallinfo = (Mallinfo)defined_with_malloc("mallinfo2");
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGRTMIN + 7, &action, NULL);
}
