// Checks in a forked child, for what changes a whole process or might hang it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace ebb::test {

constexpr unsigned kChildLimitS = 40;  // a child that takes longer hangs

// What a child checks. Its exit code is the number of the check that failed first, 0 for none.
class ChildChecks {
 public:
  void expect(bool good) {
    ++number_;
    if (!good && failed_ == 0) failed_ = number_;
  }
  [[noreturn]] void end() { _exit(failed_); }

 private:
  int number_ = 0, failed_ = 0;
};

// Runs `body` in a child; returns its exit code, or minus the signal that ended it.
template <class Body>
int run_in_child(Body body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(kChildLimitS);
    ChildChecks checks;
    body(checks);
    checks.end();
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace ebb::test
