// Forks while other threads are being sampled: both processes go on, and both profiles are whole.
#include <atomic>
#include <thread>

#include "child_process.h"
#include "profile/profiled.h"

namespace {

using ebb::test::kEveryBlock;
using ebb::test::ParsedProfile;
using ebb::test::run_in_child;
using ebb::test::written_profile;

TEST(ProfileFork, BothProcessesHaveAWholeProfileAndGoOn) {
  ebb_collect(false);
  ASSERT_TRUE(ebb_profile_start(kEveryBlock));
  void* held = ebb_malloc(1000);
  std::atomic<bool> stop{false};
  auto allocate = [&stop] {
    void* p = nullptr;
    for (size_t i = 0; !stop; ++i) {
      p = ebb_realloc(p, 1 + i * 977 % 100000);
      ebb_free(ebb_malloc(i % 300));
    }
    ebb_free(p);
  };
  std::thread others[] = {std::thread(allocate), std::thread(allocate)};
  for (int fork_number = 0; fork_number < 20; ++fork_number) {
    int status = run_in_child([&](ebb::test::ChildChecks& checks) {
      ParsedProfile inherited(written_profile());
      checks.expect(inherited.valid);
      checks.expect(inherited.samples >= 1);
      ebb_free(held);
      void* blocks[100];
      for (void*& block : blocks) block = ebb_malloc(100);
      ParsedProfile own(written_profile());
      checks.expect(own.valid);
      checks.expect(own.samples == inherited.samples + 99);
      for (void* block : blocks) ebb_free(block);
      checks.expect(ParsedProfile(written_profile()).samples == inherited.samples - 1);
    });
    EXPECT_EQ(status, 0) << "the check of this number failed";
    EXPECT_TRUE(ParsedProfile(written_profile()).valid);
  }
  stop = true;
  for (std::thread& other : others) other.join();
  ebb_free(held);
  EXPECT_EQ(ParsedProfile(written_profile()).samples, 0u);
  ebb_profile_stop();
}

}  // namespace
