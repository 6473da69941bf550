// Forces an interleaving of several threads: each stops at a named point of the code under test (base/test_point.h)
// until the test lets it go on.
//
//   Interleaving steps;
//   steps.hold("pass", "purge.before_os");
//   std::thread pass = steps.run("pass", [] { scavenger_pass(now); });
//   steps.wait_until_held("pass");      it stands in the middle of a step
//   …
//   steps.release("pass");
//
// Threads are told apart by roles; a thread without one is never stopped, nor is any in a fork child. Waiting is by
// condition variable, so no test depends on how fast anything is; a limit turns a deadlock into an end with a
// sentence.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/test_point.h"

namespace ebb::test {

class Interleaving {
 public:
  Interleaving() {
    active_ = this;
    generation_ = ++generations_;
    g_test_point_hook = [](const char* name) {
      // A fork may have left this object's mutex locked by a thread that is not in the child.
      if (getpid() != active_->process_) return;
      if (role_ == nullptr || role_generation_ != active_->generation_) active_->cast(name);
      if (role_ != nullptr) active_->pass_point(name);
    };
  }
  // All threads with a role have ended by then, or are waiting for the test's end.
  ~Interleaving() { g_test_point_hook = nullptr; }
  Interleaving(const Interleaving&) = delete;
  Interleaving& operator=(const Interleaving&) = delete;

  // The thread of `role` stops when it next passes `point`.
  void hold(const std::string& role, const std::string& point) {
    std::lock_guard guard(mutex_);
    parts_[role].holds_at = point;
  }

  // It does `action` whenever it passes `point`, in the middle of what it is doing: as a signal handler would.
  void interrupt(const std::string& role, const std::string& point, std::function<void()> action) {
    std::lock_guard guard(mutex_);
    parts_[role].interrupt_at = point;
    parts_[role].action = std::move(action);
  }

  // The next thread without a role that passes `point` plays `role` from then on: for threads that the code under test
  // has started.
  void cast_at(const std::string& role, const std::string& point) {
    std::lock_guard guard(mutex_);
    casts_[point] = &parts_[role];
  }

  void wait_until_held(const std::string& role) {
    wait(("\"" + role + "\" to be held").c_str(), [&] { return parts_[role].is_held; });
  }

  // True when it is held or has ended: the two things that can become of it.
  bool wait_until_held_or_ended(const std::string& role) {
    wait(("\"" + role + "\" to be held or to end").c_str(), [&] { return parts_[role].is_held || parts_[role].has_ended; });
    std::lock_guard guard(mutex_);
    return parts_[role].is_held;
  }

  // Goes on, to stop again at `next` if that is given.
  void release(const std::string& role, const std::string& next = "") {
    std::lock_guard guard(mutex_);
    parts_[role].holds_at = next;
    parts_[role].is_held = false;
    changed_.notify_all();
  }

  bool has_ended(const std::string& role) {
    std::lock_guard guard(mutex_);
    return parts_[role].has_ended;
  }

  // How often the thread of `role` has passed `point`.
  int count(const std::string& role, const std::string& point) {
    std::lock_guard guard(mutex_);
    return parts_[role].passed[point];
  }

  // A thread in a role.
  std::thread run(const std::string& role, std::function<void()> body) {
    Part* part;
    {
      std::lock_guard guard(mutex_);
      part = &parts_[role];
      part->has_ended = false;
    }
    return std::thread([this, part, body = std::move(body)] {
      take_role(part);
      body();
      role_ = nullptr;
      std::lock_guard guard(mutex_);
      part->has_ended = true;
      changed_.notify_all();
    });
  }

  // The calling thread plays a role while `body` runs.
  void play(const std::string& role, const std::function<void()>& body) {
    {
      std::lock_guard guard(mutex_);
      take_role(&parts_[role]);
    }
    body();
    role_ = nullptr;
  }

 private:
  struct Part {
    std::string holds_at, interrupt_at;
    std::function<void()> action;
    std::map<std::string, int> passed;
    bool is_held = false, has_ended = false;
  };

  void take_role(Part* part) {
    role_ = part;
    role_generation_ = generation_;
  }

  void cast(const char* name) {
    std::lock_guard guard(mutex_);
    role_ = nullptr;
    auto found = casts_.find(name);
    if (found == casts_.end()) return;
    take_role(found->second);
    casts_.erase(found);
  }

  void pass_point(const char* name) {
    Part* part = role_;
    std::unique_lock lock(mutex_);
    ++part->passed[name];
    if (part->interrupt_at == name) {
      role_ = nullptr;  // what it does there passes points as nobody
      lock.unlock();
      part->action();
      lock.lock();
      role_ = part;
    }
    if (part->holds_at != name) return;
    part->holds_at.clear();
    part->is_held = true;
    changed_.notify_all();
    wait_locked(lock, "a held thread to be released", [part] { return !part->is_held; });
  }

  template <class Condition>
  void wait(const char* what, Condition condition) {
    std::unique_lock lock(mutex_);
    wait_locked(lock, what, condition);
  }
  template <class Condition>
  void wait_locked(std::unique_lock<std::mutex>& lock, const char* what, Condition condition) {
    if (changed_.wait_for(lock, std::chrono::seconds(60), condition)) return;
    fprintf(stderr, "nothing happened in 60 s while waiting for %s\n", what);
    abort();
  }

  static inline Interleaving* active_ = nullptr;
  static inline std::atomic<uint64_t> generations_{0};
  static inline thread_local Part* role_ = nullptr;
  static inline thread_local uint64_t role_generation_ = 0;  // roles do not outlive their play
  uint64_t generation_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Part> parts_;
  std::map<std::string, Part*> casts_;
};

}  // namespace ebb::test
