// Processes, threads, time and limits on Linux.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/bits.h"
#include "base/units.h"
#include "os/fault.h"
#include "os/os.h"
#include "os/syscall.h"

namespace ebb::os {
namespace {

constinit std::atomic<ClockSource> g_clock{nullptr};
constinit pthread_key_t g_thread_key;

// Reads a small file whole; returns the number of bytes, 0 on any failure.
size_t read_small_file(const char* path, char* buffer, size_t capacity) {
  int fd = open_to_read(path);
  if (fd < 0) return 0;
  size_t length = 0;
  while (length + 1 < capacity) {
    long got = read_some(fd, buffer + length, capacity - 1 - length);
    if (got <= 0) break;
    length += static_cast<size_t>(got);
  }
  close_file(fd);
  buffer[length] = '\0';
  return length;
}

size_t parse_number(const char* text) {
  while (*text == ' ') ++text;
  size_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + static_cast<size_t>(*text - '0');
  return value;
}

// The number behind "Name:" in a file of /proc, in the file's unit (KiB); 0 when absent.
size_t field_of(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at == nullptr ? 0 : parse_number(at + strlen(name));
}

size_t address_space_left() {
  struct rlimit limit;
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_AS, 0, as_long(&limit)) != 0) return SIZE_MAX;
  if (limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  char text[128];
  if (read_small_file("/proc/self/statm", text, sizeof(text)) == 0) return limit.rlim_cur;
  size_t used = parse_number(text) * page_bytes();
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

bool commit_is_strict() {
  char text[16];
  return read_small_file("/proc/sys/vm/overcommit_memory", text, sizeof(text)) > 0 && text[0] == '2';
}

size_t physical_bytes() {
  // sysinfo(2): totalram in units of mem_unit.
  struct {
    long uptime;
    unsigned long loads[3], totalram, freeram, sharedram, bufferram, totalswap, freeswap;
    unsigned short procs, pad;
    unsigned long totalhigh, freehigh;
    unsigned int mem_unit;
    char rest[64];
  } info;
  if (raw_syscall(SYS_sysinfo, as_long(&info)) != 0) return 4 * GiB;
  return info.totalram * info.mem_unit;
}

}  // namespace

Limits limits() {
  Limits result{physical_bytes(), address_space_left(), SIZE_MAX, commit_is_strict()};
  if (result.strict_commit) {
    char text[4096];
    if (read_small_file("/proc/meminfo", text, sizeof(text)) > 0) {
      size_t limit = field_of(text, "CommitLimit:") * KiB;
      size_t used = field_of(text, "Committed_AS:") * KiB;
      result.commit_limit_bytes = limit > used ? limit - used : 0;
    }
  }
  return result;
}

bool is_privileged_execution() { return getauxval(AT_SECURE) != 0; }

char** environment() { return environ; }

uint64_t monotonic_ns() {
  ClockSource source = g_clock.load(std::memory_order_acquire);
  if (source != nullptr) return source();
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void set_clock_for_test(ClockSource source) { g_clock.store(source, std::memory_order_release); }

int process_id() { return static_cast<int>(raw_syscall(SYS_getpid)); }

int parent_process_id() { return static_cast<int>(raw_syscall(SYS_getppid)); }

void wait(const uint32_t* word, uint32_t expected, uint64_t timeout_ns) {
  struct timespec timeout;
  struct timespec* limit = nullptr;
  if (timeout_ns != UINT64_MAX) {
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1000000000u);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1000000000u);
    limit = &timeout;
  }
  raw_syscall(SYS_futex, as_long(word), FUTEX_WAIT_PRIVATE, static_cast<long>(expected), as_long(limit));
}

void wake(const uint32_t* word, int count) { raw_syscall(SYS_futex, as_long(word), FUTEX_WAKE_PRIVATE, count); }

namespace {
void* thread_entry(void* body) {
  reinterpret_cast<void (*)()>(body)();
  return nullptr;
}
}  // namespace

bool start_thread(void (*body)()) {
  if (is_refused_by_test("start_thread", nullptr, 0)) return false;
  int saved_errno = errno;
  // The new thread inherits the mask: no signal of the program is ever delivered to it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  bool started = false;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 64 * KiB + page_bytes());
    pthread_t thread;
    started = pthread_create(&thread, &attributes, thread_entry, reinterpret_cast<void*>(body)) == 0;
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved_errno;
  return started;
}

bool watch_thread_ends(void (*ended)(void* value)) { return pthread_key_create(&g_thread_key, ended) == 0; }

void watch_this_thread(void* value) { pthread_setspecific(g_thread_key, value); }

void watch_fork(void (*prepare)(), void (*parent)(), void (*child)()) { pthread_atfork(prepare, parent, child); }

bool process_barrier() {
  constexpr long kPrivateExpedited = 1 << 3, kRegister = 1 << 4;
  if (raw_syscall(SYS_membarrier, kPrivateExpedited, 0, 0) == 0) return true;
  return raw_syscall(SYS_membarrier, kRegister, 0, 0) == 0 && raw_syscall(SYS_membarrier, kPrivateExpedited, 0, 0) == 0;
}

uint64_t entropy() {
  constexpr long kNonBlocking = 1;
  uint64_t bits = 0;
  if (raw_syscall(SYS_getrandom, as_long(&bits), sizeof(bits), kNonBlocking) != sizeof(bits)) {
    bits = monotonic_ns() * 0x9E3779B97F4A7C15u ^ reinterpret_cast<uintptr_t>(&bits);
  }
  return bits;
}

void set_out_of_memory() { errno = ENOMEM; }

void write_error(const char* text, size_t length) { raw_syscall(SYS_write, 2, as_long(text), static_cast<long>(length)); }

void abort_process() { abort(); }

}  // namespace ebb::os
