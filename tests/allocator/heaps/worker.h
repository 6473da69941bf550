// A thread that does what it is told, one thing after the other, and is otherwise blocked: in the allocator's eyes a
// running thread that never calls.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace ebb::test {

class Worker {
 public:
  Worker() : thread_([this] { loop(); }) {}
  ~Worker() { end(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns when it is done.
  void run(std::function<void()> task) {
    start(std::move(task));
    wait();
  }

  // Returns at once; wait() waits for it.
  void start(std::function<void()> task) {
    std::lock_guard guard(mutex_);
    task_ = std::move(task);
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !task_; });
  }

  // Ends the thread and returns when it is gone.
  void end() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard guard(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return task_ || ending_; });
      if (!task_) return;
      lock.unlock();
      task_();
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace ebb::test
