// The contract with the operating system: everything that Ebb asks of it, and what each call promises.
// Implemented by memory_linux.cc and process_linux.cc. OS headers and macros appear in os/ only.
//
// All calls are safe from any thread, never allocate unless they say so, never change errno, and go to the kernel
// directly: a program may interpose mmap, madvise and friends with functions that allocate.
#pragma once

#include <sys/single_threaded.h>

#include <cstddef>
#include <cstdint>

namespace ebb::os {

// ---- memory ---------------------------------------------------------------------------------------------

// Bytes of an OS page, a power of two from 4 KiB to 64 KiB. Tests may inject a larger one.
size_t page_bytes();
void set_page_bytes_for_test(size_t bytes);

// Reserves address space that cannot be accessed yet and costs no commit charge. Returns a start aligned to
// `alignment` (a power of two), or null when refused.
void* reserve(size_t bytes, size_t alignment);

// Gives up [start, start+bytes) for good.
void release(void* start, size_t bytes);

// Makes reserved memory readable and writable; fresh memory reads as zero. False when refused (commit limit,
// number of mappings).
bool commit(void* start, size_t bytes);

// Gives the contents back. True: the range stays accessible, holds no memory, and reads as zero. False: the
// OS refused (locked memory, a sandbox, an old kernel), nothing is known of the contents and the caller must
// not try the same range in a loop.
bool purge(void* start, size_t bytes);

// Gives back contents and commit charge: the range must be committed again before use. False as purge().
bool decommit(void* start, size_t bytes);

// Replaces committed memory by fresh committed memory that reads as zero, joined with the mappings beside it.
// False when refused; then nothing has changed.
bool renew(void* start, size_t bytes);

// Moves the contents of the pages at `from` to `to` without copying, leaving `from` accessible and zero. Both
// ranges are committed and do not overlap. False when the OS can't; then nothing has changed.
bool move_pages(void* from, void* to, size_t bytes);

// Asks for memory of a NUMA node; -1: the system's choice again. False when there is no such node; a kernel without
// NUMA has one, 0.
bool bind_to_node(void* start, size_t bytes, int node);

// Advice on transparent huge pages; failure is harmless and ignored.
void advise_huge_pages(void* start, size_t bytes, bool wanted);

// Bytes of [start, start+bytes) that are resident; for statistics and tests, slow.
size_t resident_bytes(void* start, size_t bytes);

// ---- what the process may have --------------------------------------------------------------------------

struct Limits {
  size_t physical_bytes;       // of the machine
  size_t address_space_bytes;  // what RLIMIT_AS still allows; SIZE_MAX for no limit
  size_t commit_limit_bytes;   // strict overcommit: what is left to commit; SIZE_MAX otherwise
  bool strict_commit;          // vm.overcommit_memory is 2
};
Limits limits();

// True when the process must not trust its environment (set-user-ID and the like).
bool is_privileged_execution();

// The process's environ array; may be null before the libc has set it up.
char** environment();

// ---- time, processes, threads ---------------------------------------------------------------------------

// Nanoseconds of a clock that never goes back. Tests inject another.
uint64_t monotonic_ns();
using ClockSource = uint64_t (*)();
void set_clock_for_test(ClockSource source);  // null: the real one

// False once the process may have a second thread. Inline: api/start.cc lies apart from all other code.
inline bool is_single_threaded() { return __libc_single_threaded != 0; }

// The kernel's process id, not a cached one, so that a vfork child is told from its parent.
int process_id();
int parent_process_id();

// Sleeps while *word == expected, at most `timeout_ns` (UINT64_MAX: for ever). May return early.
void wait(const uint32_t* word, uint32_t expected, uint64_t timeout_ns);
void wake(const uint32_t* word, int count);

// Starts a detached thread with all signals blocked and a small stack. False when refused.
bool start_thread(void (*body)());

// Has `ended(value)` called on each thread that watched itself, when it ends; called once, before any thread does.
// False when the libc has no room left for that. May allocate.
bool watch_thread_ends(void (*ended)(void* value));

// Asks for that call, with `value`, when the calling thread ends; also while it is ending, then the libc calls again
// for a bounded number of times. May allocate.
void watch_this_thread(void* value);

// Has the three called around each fork: before, and after in both processes. May allocate.
void watch_fork(void (*prepare)(), void (*parent)(), void (*child)());

// A full memory barrier on every running thread of this process. False where the kernel has none.
bool process_barrier();

// Unpredictable bits; never fails (falls back to the clock).
uint64_t entropy();

// Sets errno to ENOMEM: the one thing that a caller of malloc may read of it.
void set_out_of_memory();

// The kernel's number of the calling thread, as debuggers show it.
uint64_t thread_number();

// ---- call stacks (os/call_stack_linux.cc) ---------------------------------------------------------------

// Loads what call_stack() needs, once: must be called before it, outside of malloc, and may allocate.
void prepare_call_stacks();

// Return addresses of the calling thread, innermost first; their number, at most `most`. 0 where the libc or the
// system has no unwinder.
size_t call_stack(void** frames, size_t most);

// Whether an address is within Ebb's library; false when Ebb is linked into the program itself.
bool is_library_code(const void* address);

// ---- files (os/file_linux.cc) ---------------------------------------------------------------------------

// A file descriptor, closed at exec; minus an errno value on failure. Writing creates the file or empties it.
int open_to_read(const char* path);
int open_to_write(const char* path);
void close_file(int fd);

// Bytes read, 0 at the end; minus an errno value on failure.
long read_some(int fd, char* buffer, size_t bytes);

// Writes all of it, in as many calls as it takes; 0, or an errno value.
int write_whole(int fd, const char* data, size_t bytes);

// ---- last words -----------------------------------------------------------------------------------------

// Writes to standard error, ignoring failure.
void write_error(const char* text, size_t length);
[[noreturn]] void abort_process();

}  // namespace ebb::os
