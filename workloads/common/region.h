// The region of interest: what counters count.
//
// Owns the talk with `perf stat --control` and callgrind's collection switch. The session opens and
// closes the region on the main thread; every other thread that works in it holds a ThreadRegion,
// because callgrind collects per thread. Costs a few instructions when nobody counts.
#pragma once

namespace tidemark {

// The two descriptors of TIDEMARK_PERF_CONTROL_FDS. Main thread only.
class CounterControl {
 public:
  // Reads the environment; a malformed value ends the process with exit code 2.
  CounterControl();

  // Each returns when the counters' owner has acknowledged. A peer that is gone or answers anything
  // else ends the process: figures of an unknown region are worth nothing.
  void enable();
  void disable();

 private:
  void command(const char* line);

  int control_ = -1;
  int acknowledge_ = -1;
};

// Switches callgrind's collection for the calling thread; callers keep the calls paired.
void toggle_callgrind();

// Held by a worker thread while it does what the workload measures.
class ThreadRegion {
 public:
  ThreadRegion() { toggle_callgrind(); }
  ~ThreadRegion() { toggle_callgrind(); }
  ThreadRegion(const ThreadRegion&) = delete;
  ThreadRegion& operator=(const ThreadRegion&) = delete;
};

}  // namespace tidemark
