// Live samples of the heap profiler: what is known of each sampled block, from its allocation to its free, and whom
// the program wants told of both.
//
// Called by heap/sampling.cc when a block is sampled, by heap/large.cc when the block of a page with kFlagSampled
// ends, by diagnostics/profile.cc to read them. Any thread. A lock of its own guards the list and the hooks; nothing
// else is done under it, and it is never held over a call of the program's or the unwinder.
//
// Invariants:
//  1. A page has kFlagSampled exactly while Page::sample is in the list; both change together, under the lock. So
//     they agree in a fork child, too.
//  2. Each sample in the list has been, or is just being, told to on_alloc, and is told to on_free once; its id is
//     unique in the process. Its block's memory is not reused before that, unless the free came from within a hook:
//     then on_free is called when the outermost hook of the thread has returned.
//  3. While a thread is *taking* (a sample, or in a hook) nothing that it allocates is counted or sampled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "page/page.h"

namespace ebb {

constexpr size_t kMostFrames = 64;

// As ebb_sample_t (ebb.h), to which the interface casts it.
struct SampleFacts {
  uint64_t id;
  const void* block;
  size_t size_bytes;    // usable
  size_t weight_bytes;  // of all allocations, how much this one stands for
  uint64_t time_ns;     // monotonic clock
  uint64_t thread;      // the kernel's number
  size_t depth;         // frames of the stack
  void* const* stack;   // return addresses, innermost first
};

using SampleHook = void (*)(const SampleFacts* sample, void* argument);
struct SampleHooks {
  SampleHook on_alloc = nullptr;
  SampleHook on_free = nullptr;
  void* argument = nullptr;
};
void sample_hooks_set(const SampleHooks& hooks);

// The calling thread takes a sample, or runs a hook, while one of these lives.
class SampleTaking {
 public:
  SampleTaking();
  ~SampleTaking();  // tells the program what was freed meanwhile
  SampleTaking(const SampleTaking&) = delete;
  SampleTaking& operator=(const SampleTaking&) = delete;

 private:
  bool is_outermost_;
};
bool is_taking_sample();

// Makes the block of a large page a sample of `session`, with the caller's stack; `caller`: the return address of the
// function that the program called, if known. The thread is taking. False: no memory for that, nothing has changed.
bool sample_begin(Page* page, uint32_t session, size_t weight_bytes, const void* caller);

// The block of the page, which has kFlagSampled, is about to be freed or resized. Nothing is held.
EBB_COLD void sample_end(Page* page);

// Copies the live samples of a session: for each its size, the depth of its stack and the stack. Returns the number
// of words that takes; when it is more than `capacity`, nothing was copied.
size_t samples_copy(uint32_t session, uint64_t* words, size_t capacity);

void samples_lock_for_fork();
void samples_unlock_after_fork();

}  // namespace ebb
