// Start of the allocator in a process, and the events of a process's life: thread end and fork.
#pragma once

#include <atomic>

namespace ebb {

struct Thread;

// Makes the allocator ready, at the first allocation, wherever that happens: before any constructor, in an
// IFUNC resolver, in the dynamic linker. No second thread exists then, as whoever creates one allocates for it.
// False when the OS gives no memory at all. Any thread, any number of times.
bool process_start();

// Asks the libc to call back when the calling thread ends. May allocate.
void process_watch_thread_end(Thread* thread);

// Registers the fork handlers (heap/fork.cc). May allocate.
void process_watch_fork();

// Connects the layers above; called once, at the start. The scavenger defines it.
void process_connect_scavenger();

// Run at fork: `prepare` before this layer takes a lock, `parent` when it has given all back, `child` when locks can
// be had again and before pages of threads that are gone are given up. Set once by the scavenger.
struct ForkHooks {
  void (*prepare)();
  void (*parent)();
  void (*child)();
};
extern ForkHooks g_fork_hooks;

// Whether the scavenger's thread exists: it works on pages without being a Thread.
extern std::atomic<bool> g_scavenger_present;

}  // namespace ebb
