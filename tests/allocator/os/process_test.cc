// Time, waiting, threads, and words without allocation.
#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "os/message.h"
#include "os/os.h"
#include "test_point_script.h"

namespace ebb::test {
namespace {

TEST(OsTime, NeverGoesBackAndCanBeInjected) {
  uint64_t before = os::monotonic_ns();
  for (int i = 0; i < 1000; ++i) {
    uint64_t now = os::monotonic_ns();
    ASSERT_GE(now, before);
    before = now;
  }
  os::set_clock_for_test([] { return uint64_t{42}; });
  EXPECT_EQ(os::monotonic_ns(), 42u);
  os::set_clock_for_test(nullptr);
  EXPECT_GE(os::monotonic_ns(), before);
}

TEST(OsWait, ReturnsAtOnceWhenTheWordHasChanged) {
  uint32_t word = 1;
  os::wait(&word, 2, UINT64_MAX);  // would sleep for ever
}

TEST(OsWait, ReturnsWhenTheTimeIsOver) {
  uint32_t word = 1;
  uint64_t before = os::monotonic_ns();
  for (uint64_t now = before; now - before < 3000000; now = os::monotonic_ns()) os::wait(&word, 1, 3000000);
}

TEST(OsWait, AWakeEndsIt) {
  std::atomic<uint32_t> word{1};
  const uint32_t* plain = reinterpret_cast<const uint32_t*>(&word);
  std::thread sleeper([&] {
    while (word.load() == 1) os::wait(plain, 1, UINT64_MAX);
  });
  word.store(2);
  // Wakes until it has met the sleeper, who may not sleep yet, or never.
  os::wake(plain, INT32_MAX);
  sleeper.join();
}

Event* g_started;
sigset_t g_mask;

TEST(OsThread, RunsWithAllSignalsBlocked) {
  Event started;
  g_started = &started;
  errno = 5;
  ASSERT_TRUE(os::start_thread([] {
    pthread_sigmask(SIG_SETMASK, nullptr, &g_mask);
    g_started->set();
  }));
  EXPECT_EQ(errno, 5);
  started.wait("the thread");
  for (int signal : {SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF}) EXPECT_TRUE(sigismember(&g_mask, signal)) << signal;
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_FALSE(sigismember(&own, SIGUSR1)) << "the starter's mask is as it was";
}

TEST(OsProcess, AVforkChildIsToldFromItsParent) {
  EXPECT_EQ(os::process_id(), getpid());
  pid_t child = fork();
  if (child == 0) _exit(os::process_id() == getpid() && os::process_id() != getppid() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(OsProcess, EntropyDiffers) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(os::entropy());
  EXPECT_EQ(seen.size(), 100u);
}

std::string text_of(const Message& message) { return {message.data(), message.length()}; }

TEST(Message, NumbersPointersAndText) {
  Message message;
  message.text("a ").number(0).text(" ").number(UINT64_MAX).text(" ").hex(0).text(" ").hex(0xDEADBEEF);
  message.text(" ").pointer(reinterpret_cast<void*>(0x1000));
  EXPECT_EQ(text_of(message), "a 0 18446744073709551615 0x0 0xdeadbeef 0x1000");
}

TEST(Message, TooLongALineIsCutNotOverrun) {
  Message message;
  for (int i = 0; i < 200; ++i) message.text("0123456789");
  EXPECT_EQ(message.length(), 512u);
  EXPECT_EQ(text_of(message).substr(510), "01");
}

}  // namespace
}  // namespace ebb::test
