// errno around a call under test.
#pragma once

#include <cerrno>
#include <utility>

namespace ebb_test {

// Calls `call()` with errno set to `before`; returns what it gives and what errno is then.
template <class Call>
auto with_errno(int before, Call call) {
  errno = before;
  auto result = call();
  return std::make_pair(result, errno);
}

// errno after a call that gives nothing.
template <class Call>
int errno_after(int before, Call call) {
  errno = before;
  call();
  return errno;
}

// Keeps the compiler from knowing `value`: it warns of, and drops, allocations that cannot succeed.
template <class T>
T opaque(T value) {
  __asm__ volatile("" : "+r"(value) : : "memory");
  return value;
}

}  // namespace ebb_test
