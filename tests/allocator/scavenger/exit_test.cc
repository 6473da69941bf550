// The end of a process at any moment: with the scavenger in the middle of a step, from any thread, by every way out,
// with handlers that allocate. No end hangs or crashes.
#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "arena/cage.h"
#include "base/test_point.h"
#include "base/units.h"
#include "child_process.h"
#include "ebb/ebb.h"

namespace ebb::test {
namespace {

constexpr int kCode = 77;

std::atomic<bool> g_is_in_step{false};

// The scavenger never comes out of its first step.
void stop_in_step(const char* point) {
  if (strcmp(point, "purge.before_os") != 0) return;
  g_is_in_step = true;
  for (;;) pause();
}

void use_the_allocator() {
  void* blocks[200];
  for (size_t i = 0; i < 200; ++i) {
    blocks[i] = ebb_calloc(1, 1 + i * 331 % 70000);
    if (blocks[i] == nullptr) abort();
    memset(blocks[i], 1, 1 + i * 331 % 70000);
  }
  for (void* p : blocks) ebb_free(p);
  ebb_collect(false);
  ebb_park_begin();
  ebb_park_end();
}

struct AtThreadEnd {
  ~AtThreadEnd() { use_the_allocator(); }
};

class Exit : public testing::Test {
 protected:
  // What is buffered would be printed by each child that exits.
  void SetUp() override { fflush(nullptr); }
};

// Has the scavenger in the middle of a step, then ends by `way_out`.
template <class WayOut>
int end_in_step(WayOut way_out) {
  return run_in_child([&way_out](ChildChecks&) {
    g_test_point_hook = stop_in_step;
    ebb_free(memset(ebb_malloc(8 * MiB), 1, 8 * MiB));
    use_the_allocator();
    while (!g_is_in_step) usleep(1000);
    way_out();
  });
}

TEST_F(Exit, ExitWithTheScavengerInAStep) {
  EXPECT_EQ(end_in_step([] { exit(kCode); }), kCode);
}

TEST_F(Exit, UnderscoreExitWithTheScavengerInAStep) {
  EXPECT_EQ(end_in_step([] { _exit(kCode); }), kCode);
}

TEST_F(Exit, QuickExitWithHandlersThatAllocate) {
  EXPECT_EQ(end_in_step([] {
    at_quick_exit(use_the_allocator);
    quick_exit(kCode);
  }), kCode);
}

TEST_F(Exit, HandlersThatAllocate) {
  EXPECT_EQ(end_in_step([] {
    for (int i = 0; i < 40; ++i) atexit(use_the_allocator);
    exit(kCode);
  }), kCode);
}

TEST_F(Exit, FromAnotherThreadWhileOthersAllocateAndPark) {
  EXPECT_EQ(end_in_step([] {
    atexit(use_the_allocator);
    for (int i = 0; i < 3; ++i) {
      std::thread([] {
        for (;;) use_the_allocator();
      }).detach();
    }
    std::thread([] {
      thread_local AtThreadEnd at_end;
      (void)&at_end;
      use_the_allocator();
      exit(kCode);
    }).join();
  }), kCode);
}

// The first thread is gone without the libc's knowledge, in the middle of what it had; the process lives on.
TEST_F(Exit, LastThreadEndsTheProcess) {
  EXPECT_EQ(run_in_child([](ChildChecks&) {
    ebb_free(memset(ebb_malloc(8 * MiB), 1, 8 * MiB));
    std::thread([] {
      thread_local AtThreadEnd at_end;
      (void)&at_end;
      for (int i = 0; i < 20; ++i) use_the_allocator();
      exit(kCode);
    }).detach();
    syscall(SYS_exit, 0);
  }), kCode);
}

// Again and again at whatever moment it is, the scavenger at full speed.
TEST_F(Exit, AtAnyMomentOfAnEagerScavenger) {
#if defined(__SANITIZE_THREAD__)
  constexpr int kRounds = 4;  // a fork takes its runtime a second
#else
  constexpr int kRounds = 30;
#endif
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(run_in_child([i](ChildChecks&) {
      ebb_option_set("scavenger", 2);
      atexit(use_the_allocator);
      for (int k = 0; k <= i; ++k) {
        ebb_free(memset(ebb_malloc(2 * MiB), 1, 2 * MiB));
        use_the_allocator();
      }
      exit(kCode);
    }), kCode) << "round " << i;
  }
}

}  // namespace
}  // namespace ebb::test
