// operator new and delete of libebb.so: every form, and what happens when there is no memory.
#include <dlfcn.h>
#include <ebb/ebb.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <set>
#include <stdexcept>

#include "api/errno_after.h"
#include "api/usable.h"

namespace {

using ebb_test::opaque;

const size_t kTooMuch = opaque(size_t{1} << 50);
constexpr std::align_val_t kAlignment{256};

bool is_aligned(const void* p, size_t alignment) { return reinterpret_cast<uintptr_t>(p) % alignment == 0; }

// Each form under its name as an object file knows it.
TEST(OperatorTest, EveryFormIsEbbs) {
  Dl_info ebb_info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&ebb_malloc), &ebb_info), 0);
  for (const char* name : {"_Znwm",
                           "_Znam",
                           "_ZnwmRKSt9nothrow_t",
                           "_ZnamRKSt9nothrow_t",
                           "_ZnwmSt11align_val_t",
                           "_ZnamSt11align_val_t",
                           "_ZnwmSt11align_val_tRKSt9nothrow_t",
                           "_ZnamSt11align_val_tRKSt9nothrow_t",
                           "_ZdlPv",
                           "_ZdaPv",
                           "_ZdlPvRKSt9nothrow_t",
                           "_ZdaPvRKSt9nothrow_t",
                           "_ZdlPvm",
                           "_ZdaPvm",
                           "_ZdlPvSt11align_val_t",
                           "_ZdaPvSt11align_val_t",
                           "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                           "_ZdaPvSt11align_val_tRKSt9nothrow_t",
                           "_ZdlPvmSt11align_val_t",
                           "_ZdaPvmSt11align_val_t"}) {
    Dl_info info{};
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &info), 0) << name;
    EXPECT_STREQ(info.dli_fname, ebb_info.dli_fname) << name;
  }
}

TEST(OperatorTest, GivesBlocksOfEverySize) {
  for (size_t size = 0; size < 200000; size += size < 3000 ? 1 : size / 7) {
    void* p = opaque(operator new(size));
    EXPECT_TRUE(ebb_test::is_usable_as_promised(p, size));
    operator delete(p, size);
    p = opaque(operator new[](size, std::nothrow));
    EXPECT_TRUE(ebb_test::is_usable_as_promised(p, size));
    operator delete[](p, std::nothrow);
  }
}

TEST(OperatorTest, ZeroBytesGiveUniqueBlocks) {
  std::set<void*> blocks;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(blocks.insert(operator new(0)).second);
  for (void* p : blocks) operator delete(p);
}

TEST(OperatorTest, AlignedFormsAlign) {
  for (size_t alignment = 1; alignment <= size_t{1} << 22; alignment *= 2) {
    std::align_val_t value{alignment};
    void* blocks[] = {operator new(100, value), operator new[](100, value), operator new(100, value, std::nothrow),
                                                                            operator new[](100, value, std::nothrow)};
    for (void* p : blocks) EXPECT_TRUE(is_aligned(p, alignment)) << alignment;
    operator delete(blocks[0], value);
    operator delete[](blocks[1], 100, value);
    operator delete(blocks[2], value, std::nothrow);
    operator delete[](blocks[3], value);
  }
}

struct alignas(128) Object {
  static inline int alive = 0;
  Object() { ++alive; }
  ~Object() { --alive; }
  char bytes[200];
};

TEST(OperatorTest, ObjectsComeAndGo) {
  Object* one = opaque(new Object);
  Object* many = opaque(new Object[50]);
  EXPECT_TRUE(is_aligned(one, 128) && is_aligned(many, 128));
  EXPECT_EQ(Object::alive, 51);
  delete one;
  delete[] many;
  EXPECT_EQ(Object::alive, 0);
}

struct Throwing {
  Throwing() { throw std::runtime_error("constructor"); }
  char bytes[100];
};

size_t live_blocks() {
  ebb_stats_t stats;
  EXPECT_TRUE(ebb_stats_get(&stats, sizeof stats));
  return stats.live_blocks;
}

TEST(OperatorTest, AThrowingConstructorGivesItsBlockBack) {
  // The first exception allocates what the unwinder keeps.
  EXPECT_THROW(delete opaque(new Throwing), std::runtime_error);
  size_t before = live_blocks();
  for (int i = 0; i < 10; ++i) {
    try {
      delete opaque(new Throwing);
    } catch (const std::runtime_error&) {
    }
    try {
      delete opaque(new (std::nothrow) Throwing);
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_EQ(live_blocks(), before);
}

// ---- no memory ----

int g_calls;

struct DerivedFailure : std::bad_alloc {};

void give_up_after_three() {
  if (++g_calls == 3) std::set_new_handler(nullptr);
}
void throw_derived() {
  ++g_calls;
  throw DerivedFailure();
}
void throw_a_number() {
  ++g_calls;
  throw 42;
}

class NoMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    g_calls = 0;
    before_ = std::set_new_handler(nullptr);
  }
  void TearDown() override { std::set_new_handler(before_); }

  // Calls `use` with each form that throws, or with each that does not.
  template <class Use>
  static void each_throwing_form(Use use) {
    use([] { return operator new(kTooMuch); });
    use([] { return operator new[](kTooMuch); });
    use([] { return operator new(kTooMuch, kAlignment); });
    use([] { return operator new[](kTooMuch, kAlignment); });
  }
  template <class Use>
  static void each_nothrow_form(Use use) {
    use([] { return operator new(kTooMuch, std::nothrow); });
    use([] { return operator new[](kTooMuch, std::nothrow); });
    use([] { return operator new(kTooMuch, kAlignment, std::nothrow); });
    use([] { return operator new[](kTooMuch, kAlignment, std::nothrow); });
  }

 private:
  std::new_handler before_ = nullptr;
};

TEST_F(NoMemoryTest, WithoutAHandlerBadAllocIsThrown) {
  each_throwing_form([](auto form) { EXPECT_THROW(opaque(form()), std::bad_alloc); });
  each_nothrow_form([](auto form) { EXPECT_EQ(opaque(form()), nullptr); });
}

TEST_F(NoMemoryTest, TheHandlerIsCalledUntilItGivesUp) {
  each_throwing_form([](auto form) {
    g_calls = 0;
    std::set_new_handler(give_up_after_three);
    EXPECT_THROW(opaque(form()), std::bad_alloc);
    EXPECT_EQ(g_calls, 3);
  });
  each_nothrow_form([](auto form) {
    g_calls = 0;
    std::set_new_handler(give_up_after_three);
    EXPECT_EQ(opaque(form()), nullptr);
    EXPECT_EQ(g_calls, 3);
  });
}

TEST_F(NoMemoryTest, WhatTheHandlerThrowsPassesThrough) {
  each_throwing_form([](auto form) {
    std::set_new_handler(throw_derived);
    EXPECT_THROW(opaque(form()), DerivedFailure);
    std::set_new_handler(throw_a_number);
    EXPECT_THROW(opaque(form()), int);
  });
  EXPECT_EQ(g_calls, 8);
}

TEST_F(NoMemoryTest, NothrowFormsGiveNullWhateverTheHandlerThrows) {
  each_nothrow_form([](auto form) {
    std::set_new_handler(throw_derived);
    EXPECT_EQ(opaque(form()), nullptr);
    std::set_new_handler(throw_a_number);
    EXPECT_EQ(opaque(form()), nullptr);
  });
  EXPECT_EQ(g_calls, 8);
}

TEST_F(NoMemoryTest, AlignmentsThatAreNoPowerOfTwoAreRefused) {
  std::align_val_t odd{opaque(size_t{48})};
  EXPECT_THROW(opaque(operator new(10, odd)), std::bad_alloc);
  EXPECT_EQ(opaque(operator new(10, odd, std::nothrow)), nullptr);
  std::set_new_handler(throw_derived);
  EXPECT_THROW(opaque(operator new(10, odd)), std::bad_alloc);
  EXPECT_EQ(g_calls, 0) << "no handler can make that alignment possible";
}

TEST_F(NoMemoryTest, ExceptionsUnwindThroughTheCallerOfNew) {
  bool destroyed = false;
  struct Guard {
    bool* flag;
    ~Guard() { *flag = true; }
  };
  try {
    Guard guard{&destroyed};
    opaque(operator new(kTooMuch));
  } catch (const std::bad_alloc&) {
  }
  EXPECT_TRUE(destroyed);
}

}  // namespace
