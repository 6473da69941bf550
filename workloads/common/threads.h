// Worker threads whose bookkeeping is not the allocator's.
//
// A Team is used by one owner. std::thread would allocate its state with the allocator under test; this
// one keeps everything in the object, so a thread costs only what libc itself asks for.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>

#include "common/exits.h"

namespace tidemark {

class Team {
 public:
  static constexpr std::size_t kMaxThreads = 1024;
  // Enough for every worker; small, so that hundreds of threads fit a small address space.
  static constexpr std::size_t kStackBytes = 256 * 1024;

  // Starts `count` threads that each run body(index); `body` must outlive join().
  template <typename Body>
  void start(std::size_t count, Body& body) {
    if (count > kMaxThreads) fail_broken("a team has at most 1024 threads");
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    for (count_ = 0; count_ < count; ++count_) {
      members_[count_] = {&body, count_, {}};
      const int error = pthread_create(&members_[count_].thread, &attributes, run<Body>, &members_[count_]);
      if (error != 0) fail_broken("cannot start a thread; the limit on threads or memory is reached");
    }
    pthread_attr_destroy(&attributes);
  }

  void join() {
    while (count_ != 0) pthread_join(members_[--count_].thread, nullptr);
  }

 private:
  struct Member {
    void* body;
    std::size_t index;
    pthread_t thread;
  };

  template <typename Body>
  static void* run(void* argument) {
    const Member& member = *static_cast<Member*>(argument);
    (*static_cast<Body*>(member.body))(member.index);
    return nullptr;
  }

  Member members_[kMaxThreads];
  std::size_t count_ = 0;
};

// All of `count` threads meet here, then all go on.
class Barrier {
 public:
  explicit Barrier(std::size_t count) {
    if (pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(count)) != 0) {
      fail_broken("cannot make a barrier");
    }
  }
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  void meet() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

// One step of a spinning wait.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tidemark
