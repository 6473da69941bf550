// What each memory call of os/os.h promises, by looking at the mappings themselves.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/units.h"
#include "os/fault.h"
#include "os/os.h"

namespace ebb {
namespace {

class OsMemory : public testing::Test {
 protected:
  void SetUp() override {
    start_ = static_cast<char*>(os::reserve(kBytes, 1 * MiB));
    ASSERT_NE(start_, nullptr);
  }
  void TearDown() override {
    if (start_ != nullptr) os::release(start_, kBytes);
  }
  bool is_zero(const char* p, size_t bytes) { return p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0; }

  static constexpr size_t kBytes = 4 * MiB;
  char* start_ = nullptr;
};

TEST_F(OsMemory, AnOsPageIsAPowerOfTwo) {
  EXPECT_EQ(os::page_bytes(), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  os::set_page_bytes_for_test(16 * KiB);
  EXPECT_EQ(os::page_bytes(), 16 * KiB);
  os::set_page_bytes_for_test(0);  // asked anew
  EXPECT_EQ(os::page_bytes(), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

TEST_F(OsMemory, ReservationsAreAlignedAndCostNothing) {
  for (size_t alignment = 4 * KiB; alignment <= 1 * GiB; alignment *= 8) {
    void* p = os::reserve(10 * MiB, alignment);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u);
    EXPECT_EQ(os::resident_bytes(p, 10 * MiB), 0u);
    os::release(p, 10 * MiB);
  }
  EXPECT_EQ(os::reserve(SIZE_MAX - 100, 64 * KiB), nullptr);
  EXPECT_EQ(os::reserve(size_t{1} << 60, 64 * KiB), nullptr);
}

TEST_F(OsMemory, CommittedMemoryIsZeroAndResidentOnlyWhereTouched) {
  ASSERT_TRUE(os::commit(start_, 2 * MiB));
  EXPECT_EQ(os::resident_bytes(start_, 2 * MiB), 0u);
  EXPECT_TRUE(is_zero(start_, 64 * KiB));
  start_[100 * KiB] = 1;
  EXPECT_GE(os::resident_bytes(start_, 2 * MiB), os::page_bytes());
}

TEST_F(OsMemory, PurgedMemoryIsGoneAccessibleAndZero) {
  ASSERT_TRUE(os::commit(start_, kBytes));
  memset(start_, 0xAB, kBytes);
  ASSERT_TRUE(os::purge(start_ + 1 * MiB, 1 * MiB));
  EXPECT_EQ(os::resident_bytes(start_, kBytes), kBytes - 1 * MiB);
  EXPECT_TRUE(is_zero(start_ + 1 * MiB, 1 * MiB));
  EXPECT_EQ(start_[1 * MiB - 1], static_cast<char>(0xAB));
  EXPECT_EQ(start_[2 * MiB], static_cast<char>(0xAB));
}

TEST_F(OsMemory, DecommittedAndRenewedMemory) {
  ASSERT_TRUE(os::commit(start_, kBytes));
  memset(start_, 0xAB, kBytes);
  ASSERT_TRUE(os::renew(start_, 1 * MiB));
  EXPECT_TRUE(is_zero(start_, 1 * MiB));
  ASSERT_TRUE(os::decommit(start_ + 1 * MiB, 1 * MiB));
  EXPECT_EQ(os::resident_bytes(start_ + 1 * MiB, 1 * MiB), 0u);
  ASSERT_TRUE(os::commit(start_ + 1 * MiB, 1 * MiB));
  EXPECT_TRUE(is_zero(start_ + 1 * MiB, 1 * MiB));
  EXPECT_EQ(start_[2 * MiB], static_cast<char>(0xAB));
}

TEST_F(OsMemory, MovedPagesKeepTheirContentsAndLeaveZeroesBehind) {
  ASSERT_TRUE(os::commit(start_, kBytes));
  memset(start_, 0x42, 1 * MiB);
  ASSERT_TRUE(os::move_pages(start_, start_ + 2 * MiB, 1 * MiB));
  EXPECT_EQ(start_[2 * MiB], 0x42);
  EXPECT_EQ(memcmp(start_ + 2 * MiB, start_ + 2 * MiB + 1, 1 * MiB - 1), 0);
  EXPECT_TRUE(is_zero(start_, 1 * MiB));
}

TEST_F(OsMemory, NothingChangesErrno) {
  errno = 77;
  os::commit(start_, kBytes);
  os::purge(start_, kBytes);
  EXPECT_FALSE(os::purge(reinterpret_cast<void*>(1), 4096));
  EXPECT_FALSE(os::commit(nullptr, 4096));
  EXPECT_EQ(os::reserve(size_t{1} << 60, 4096), nullptr);
  EXPECT_EQ(errno, 77);
  os::set_out_of_memory();
  EXPECT_EQ(errno, ENOMEM);
}

TEST_F(OsMemory, LockedMemoryIsNotPurged) {
  ASSERT_TRUE(os::commit(start_, 64 * KiB));
  memset(start_, 9, 64 * KiB);
  // By number: sanitizers turn mlock into nothing.
  if (syscall(SYS_mlock, start_, 64 * KiB) != 0) GTEST_SKIP() << "RLIMIT_MEMLOCK forbids to lock 64 KiB";
  EXPECT_FALSE(os::purge(start_, 64 * KiB));
  EXPECT_EQ(start_[0], 9);
  syscall(SYS_munlock, start_, 64 * KiB);
}

TEST_F(OsMemory, TestsCanRefuseEachCall) {
  static const char* refused;
  os::g_fault_hook = [](const char* call, const void*, size_t) { return strcmp(call, refused) == 0; };
  ASSERT_TRUE((refused = "none", os::commit(start_, kBytes)));
  EXPECT_FALSE((refused = "commit", os::commit(start_, kBytes)));
  EXPECT_FALSE((refused = "purge", os::purge(start_, kBytes)));
  EXPECT_FALSE((refused = "renew", os::renew(start_, kBytes)));
  EXPECT_FALSE((refused = "decommit", os::decommit(start_, kBytes)));
  EXPECT_FALSE((refused = "move_pages", os::move_pages(start_, start_ + 1 * MiB, 1 * MiB)));
  EXPECT_EQ((refused = "reserve", os::reserve(kBytes, 4096)), nullptr);
  EXPECT_FALSE((refused = "start_thread", os::start_thread([] {})));
  os::g_fault_hook = nullptr;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadows need more than any limit
TEST(OsLimits, AnAddressSpaceLimitIsSeen) {
  EXPECT_GT(os::limits().physical_bytes, 64 * MiB);
  pid_t child = fork();
  if (child == 0) {
    // A GiB above what is mapped, the reservation included.
    size_t pages = 0;
    FILE* statm = fopen("/proc/self/statm", "r");
    if (statm == nullptr || fscanf(statm, "%zu", &pages) != 1) _exit(2);
    rlim_t most = pages * os::page_bytes() + 1 * GiB;
    struct rlimit limit = {most, most};
    setrlimit(RLIMIT_AS, &limit);
    size_t left = os::limits().address_space_bytes;
    _exit(left > 900 * MiB && left <= 1 * GiB ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace ebb
