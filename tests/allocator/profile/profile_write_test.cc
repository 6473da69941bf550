// The profile's text, and what stands in the way of writing it.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <thread>

#include "profile/profiled.h"

namespace {

using ebb::test::kEveryBlock;
using ebb::test::ParsedProfile;
using ebb::test::Profiled;
using ebb::test::written_profile;

class ProfileWrite : public Profiled {};

TEST_F(ProfileWrite, HoldsTheLiveSamplesOfTheLastProfile) {
  start(kEveryBlock);
  void* early = ebb_malloc(100);
  start(512 * 1024);
  ParsedProfile none(written_profile());
  EXPECT_TRUE(none.valid);
  EXPECT_EQ(none.samples, 0u);
  EXPECT_EQ(none.mean, 512u * 1024);
  start(kEveryBlock);
  void* blocks[] = {ebb_malloc(100), ebb_malloc(1000), ebb_malloc(100000)};
  size_t bytes = 0;
  for (void* block : blocks) bytes += ebb_usable_size(block);
  ParsedProfile three(written_profile());
  EXPECT_TRUE(three.valid);
  EXPECT_EQ(three.samples, 3u);
  EXPECT_EQ(three.bytes, bytes);
  ebb_profile_stop();
  ebb_free(blocks[2]);
  ParsedProfile two(written_profile());
  EXPECT_TRUE(two.valid);
  EXPECT_EQ(two.samples, 2u);
  ebb_free(blocks[0]);
  ebb_free(blocks[1]);
  ebb_free(early);
  EXPECT_EQ(ParsedProfile(written_profile()).samples, 0u);
}

TEST_F(ProfileWrite, SaysWhyItCannotBeWritten) {
  start(kEveryBlock);
  void* p = ebb_malloc(100);
  errno = 0;
  EXPECT_FALSE(ebb_profile_write(-1));
  EXPECT_EQ(errno, EBADF);
  int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  EXPECT_FALSE(ebb_profile_write(full));
  EXPECT_EQ(errno, ENOSPC);
  close(full);
  ebb_free(p);
}

void ignore(int) {}

// A pipe takes a little at a time, and signals without SA_RESTART cut the writes short.
TEST_F(ProfileWrite, SurvivesShortAndInterruptedWrites) {
  start(kEveryBlock);
  std::vector<void*> blocks(2000);
  for (void*& block : blocks) block = ebb_malloc(64);
  struct sigaction action = {}, before;
  action.sa_handler = ignore;
  sigaction(SIGUSR1, &action, &before);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pthread_t writer = pthread_self();
  std::string text;
  std::thread reader([&] {
    char buffer[3000];
    for (;;) {
      pthread_kill(writer, SIGUSR1);
      ssize_t got = read(ends[0], buffer, sizeof(buffer));
      if (got <= 0) return;
      text.append(buffer, static_cast<size_t>(got));
    }
  });
  EXPECT_TRUE(ebb_profile_write(ends[1])) << errno;
  close(ends[1]);
  reader.join();
  close(ends[0]);
  sigaction(SIGUSR1, &before, nullptr);
  ParsedProfile parsed(text);
  EXPECT_TRUE(parsed.valid);
  EXPECT_EQ(parsed.samples, blocks.size());
  for (void* block : blocks) ebb_free(block);
}

}  // namespace
