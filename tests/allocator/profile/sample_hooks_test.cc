// Hooks that allocate and free, and what the program is told then.
#include <thread>

#include "profile/profiled.h"

namespace {

struct Hooked {
  void* victim = nullptr;  // a sampled block that the next hook frees
  int depth = 0, deepest = 0, allocs = 0, frees = 0;
  const void* freed[4] = {};

  void enter() { deepest = std::max(deepest, ++depth); }
  void leave() {
    void* garbage[] = {ebb_malloc(40), ebb_malloc(200000), ebb_realloc(ebb_malloc(100000), 5000000)};
    for (void* p : garbage) ebb_free(p);
    ebb_free(std::exchange(victim, nullptr));
    --depth;
  }
  static void on_alloc(const ebb_sample_t*, void* arg) {
    Hooked* self = static_cast<Hooked*>(arg);
    self->enter();
    ++self->allocs;
    self->leave();
  }
  static void on_free(const ebb_sample_t* sample, void* arg) {
    Hooked* self = static_cast<Hooked*>(arg);
    self->enter();
    if (self->frees < 4) self->freed[self->frees] = sample->block;
    ++self->frees;
    self->leave();
  }
};

class SampleHooks : public testing::Test {
 protected:
  void SetUp() override {
    ebb_collect(false);
    ebb::sampling_seed_for_test(5);
    ebb_profile_hooks_set(Hooked::on_alloc, Hooked::on_free, &hooked_);
    ASSERT_TRUE(ebb_profile_start(ebb::test::kEveryBlock));
  }
  void TearDown() override {
    ebb_profile_stop();
    ebb_profile_hooks_set(nullptr, nullptr, nullptr);
    ebb::sampling_seed_for_test(0);
  }
  Hooked hooked_;
};

TEST_F(SampleHooks, WhatTheyAllocateIsNotSampled) {
  for (int i = 0; i < 100; ++i) ebb_free(ebb_malloc(50));
  EXPECT_EQ(hooked_.allocs, 100);
  EXPECT_EQ(hooked_.frees, 100);
  EXPECT_EQ(hooked_.deepest, 1);
}

TEST_F(SampleHooks, WhatTheyFreeIsToldWhenTheyHaveReturned) {
  void* first = ebb_malloc(50);
  void* second = ebb_malloc(50);
  void* third = ebb_malloc(50);
  hooked_.victim = second;
  ebb_free(first);
  EXPECT_EQ(hooked_.frees, 2);
  EXPECT_EQ(hooked_.freed[0], first);
  EXPECT_EQ(hooked_.freed[1], second);
  hooked_.victim = third;
  void* fourth = ebb_malloc(50);  // its on_alloc frees the third
  EXPECT_EQ(hooked_.frees, 3);
  EXPECT_EQ(hooked_.freed[2], third);
  ebb_free(fourth);
  EXPECT_EQ(hooked_.deepest, 1);
}

TEST_F(SampleHooks, FactsAreThoseOfTheAllocation) {
  struct Facts {
    ebb_sample_t sample{};
    void* innermost = nullptr;
  } facts;
  ebb_profile_hooks_set(
      [](const ebb_sample_t* sample, void* arg) {
        Facts* to = static_cast<Facts*>(arg);
        to->sample = *sample;
        if (sample->depth != 0) to->innermost = sample->stack[0];
      },
      nullptr, &facts);
  void* p = ebb_malloc(1000);
  EXPECT_EQ(facts.sample.block, p);
  EXPECT_EQ(facts.sample.size_bytes, ebb_usable_size(p));
  EXPECT_EQ(facts.sample.weight_bytes, ebb_usable_size(p));  // with a mean of one byte it stands for itself
  EXPECT_EQ(facts.sample.thread, static_cast<uint64_t>(gettid()));
  EXPECT_GT(facts.sample.time_ns, 0u);
  EXPECT_GE(facts.sample.depth, 2u);
  EXPECT_NE(facts.innermost, nullptr);
  uint64_t id = facts.sample.id;
  ebb_free(p);
  ebb_free(ebb_malloc(1000));
  EXPECT_GT(facts.sample.id, id);
}

}  // namespace
