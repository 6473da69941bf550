// Forces an interleaving: what happens at named points of the code under test (base/test_point.h).
//
// A Gate is a point where threads stop until the test opens it. Waiting is by condition variable, so no test depends
// on how fast anything is; a limit turns a deadlock into a failure.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>

#include "base/test_point.h"

namespace ebb::test {

// Signals from one thread to others that something has happened; once set it stays.
class Event {
 public:
  void set() {
    std::lock_guard guard(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  bool is_set() {
    std::lock_guard guard(mutex_);
    return is_set_;
  }
  // Ends the process with a sentence when it does not happen: a thread that waits on cannot be joined.
  void wait(const char* what) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(60), [this] { return is_set_; })) return;
    fprintf(stderr, "nothing happened in 60 s while waiting for: %s\n", what);
    abort();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

// Calls `action` at the points named `point`, while this lives; one at a time in a program. Set it up before the
// threads that pass the point start.
class AtPoint {
 public:
  AtPoint(std::string point, std::function<void()> action) {
    point_ = std::move(point);
    action_ = std::move(action);
    g_test_point_hook = [](const char* name) {
      if (point_ == name) action_();
    };
  }
  ~AtPoint() { g_test_point_hook = nullptr; }
  AtPoint(const AtPoint&) = delete;
  AtPoint& operator=(const AtPoint&) = delete;

 private:
  static inline std::string point_;
  static inline std::function<void()> action_;
};

}  // namespace ebb::test
