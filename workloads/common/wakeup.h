// An event descriptor that one thread waits on and another signals: a blocking wait, as event loops have.
//
// Any thread may signal; one waits. The descriptor lives as long as the object.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "common/exits.h"

namespace tidemark {

class Wakeup {
 public:
  Wakeup() : descriptor_(eventfd(0, EFD_CLOEXEC)) {
    if (descriptor_ < 0) fail_broken_errno("cannot make an event descriptor");
  }
  ~Wakeup() { close(descriptor_); }
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  void signal() const {
    const std::uint64_t one = 1;
    if (write(descriptor_, &one, sizeof one) != sizeof one) fail_broken_errno("cannot signal an event");
  }

  // Returns when there was a signal since the last wait; several count as one.
  void wait() const {
    std::uint64_t count;
    while (read(descriptor_, &count, sizeof count) < 0) {
      if (errno != EINTR) fail_broken_errno("cannot wait for an event");
    }
  }

 private:
  const int descriptor_;
};

}  // namespace tidemark
