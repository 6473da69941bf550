// Runs a part of a test in a forked child.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ebb::test {

// Runs `body` in a child and returns its exit code.
inline int in_child(void (*body)(void*), void* argument) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body(argument);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace ebb::test
