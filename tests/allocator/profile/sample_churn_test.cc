// Threads that allocate, resize and free each other's blocks while one allocation in a few is sampled: every byte of
// every block is what was written there.
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "profile/profiled.h"

namespace {

using ebb::test::Profiled;

struct Content {
  size_t size;
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(this + 1); }
  unsigned char pattern() const { return static_cast<unsigned char>(size * 31 + 7); }
};

Content* filled(void* p, size_t size) {
  Content* content = static_cast<Content*>(p);
  content->size = size;
  memset(content->bytes(), content->pattern(), size);
  return content;
}

bool is_whole(Content* content, size_t bytes, unsigned char pattern) {
  // Each byte is the pattern: the first is, and each is like the one before.
  return content->bytes()[0] == pattern && memcmp(content->bytes(), content->bytes() + 1, bytes - 1) == 0;
}

constexpr size_t kSlots = 64;
constexpr int kTurns = 4000;

struct Shared {
  std::atomic<Content*> slots[kSlots] = {};
  std::atomic<int> damaged{0};
};

size_t random_size(std::mt19937& random) {
  unsigned kind = random() % 64;
  return 1 + random() % (kind == 0 ? 300000 : kind < 8 ? 20000 : 400);
}

void churn(Shared* shared, unsigned seed) {
  std::mt19937 random(seed);
  auto check = [shared](bool good) { shared->damaged += !good; };
  for (int turn = 0; turn < kTurns; ++turn) {
    size_t size = random_size(random);
    void* p = random() % 4 == 0 ? ebb_aligned_alloc(64, sizeof(Content) + size) : ebb_malloc(sizeof(Content) + size);
    Content* old = shared->slots[random() % kSlots].exchange(filled(p, size));
    if (old == nullptr) continue;
    check(is_whole(old, old->size, old->pattern()));
    if (random() % 3 == 0) {
      size_t old_size = old->size, new_size = random_size(random);
      unsigned char pattern = old->pattern();
      old = static_cast<Content*>(ebb_realloc(old, sizeof(Content) + new_size));
      check(is_whole(old, std::min(old_size, new_size), pattern));
    }
    ebb_free(old);
    if (turn % 1000 == 0) ebb_collect(false);
  }
}

TEST_F(Profiled, EveryLiveByteIsWhatWasWritten) {
  start(1024);
  Shared shared;
  std::thread other(churn, &shared, 1);
  churn(&shared, 2);
  other.join();
  std::thread third(churn, &shared, 3);  // begins and ends within the profile
  third.join();
  EXPECT_EQ(shared.damaged, 0);
  EXPECT_GT(taken(), 1000u);
  for (auto& slot : shared.slots) ebb_free(slot);
  EXPECT_EQ(live_count(), 0u);
  EXPECT_EQ(taken(), ended());
}

}  // namespace
