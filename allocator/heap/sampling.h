// Which allocations the heap profiler samples.
//
// A sample is due each time a thread has allocated an exponentially distributed number of bytes: then every byte is
// as likely to be the one, whatever the program's rhythm, and a block of s bytes is sampled with the probability
// 1 - exp(-s / mean), independently of all others.
//
// The fast path pops a list and counts nothing. So the slow path, which fills the list, counts the blocks that it puts
// there; where the countdown ends among them it cuts the list in front of that very block and marks the class. The
// thread comes back to the slow path when it wants the next block: that allocation is the sample.
//
//   take_block_counted ─▶ list marked: take_sample ─▶ a span of its own, sample_begin
//               └─▶ refill_page, count, cut
//   take_large ─▶ count_large ─▶ sample_begin
//
// A sampled block has a span of its own, whatever its size, so its free takes a slow path by itself, where its page
// says what it is. What is put on a list and comes back unused (the thread parks or ends) was counted and not
// allocated: the exponential distribution has no memory, so what comes next is as likely to be sampled as ever; a
// mark goes with its list.
//
// Thread safety: each thread counts for itself, its marks are its heaps' (under its gate). Starting and stopping is
// for any thread; others notice at their next slow path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/heap.h"

namespace ebb {

constexpr size_t kMostSamplingMean = size_t{1} << 40;

EBB_HIDDEN extern std::atomic<bool> g_sampling;
EBB_INLINE bool sampling_is_on() { return EBB_UNLIKELY(g_sampling.load(std::memory_order_relaxed)); }

// Begins a session with samples at a mean distance of `mean_bytes`, 1 to kMostSamplingMean; os::prepare_call_stacks
// was called.
void sampling_start(size_t mean_bytes);
void sampling_stop();

// The last session that was started; 0: none.
uint32_t sampling_session(size_t* mean_bytes);

// Makes the sequence of samples of threads that begin to count from now on a function of `seed`; 0: unpredictable.
void sampling_seed_for_test(uint64_t seed);

// As take_block (heap/alloc.h), when sampling is on. `caller` as in sample_begin.
EBB_COLD void* take_block_counted(Heap* from, size_t cls, bool* fresh, const void* caller);

// A large block was allocated, or resized, when sampling is on.
EBB_COLD void count_large(Page* page, const void* caller);

}  // namespace ebb
