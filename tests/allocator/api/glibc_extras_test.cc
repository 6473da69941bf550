// glibc's calls for looking at and tuning malloc, answered by Ebb.
#include <ebb/ebb.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;

// Held, not touched: addresses are enough for the figures.
std::vector<void*> hold(size_t bytes, size_t block) {
  std::vector<void*> blocks;
  for (size_t held = 0; held < bytes; held += block) blocks.push_back(malloc(block));
  return blocks;
}

TEST(Mallinfo2Test, FollowsThreeGibibytes) {
  size_t before = mallinfo2().uordblks;
  std::vector<void*> blocks = hold(3 * kGiB, 64 * kMiB);
  struct mallinfo2 full = mallinfo2();
  EXPECT_GE(full.uordblks - before, 3 * kGiB);
  EXPECT_LT(full.uordblks - before, 3 * kGiB + kMiB);
  EXPECT_EQ(full.hblkhd, 0u) << "nothing may be counted twice";
  EXPECT_EQ(full.arena, full.uordblks + full.fordblks);
  for (void* p : blocks) free(p);
  EXPECT_LT(mallinfo2().uordblks - before, kMiB);
}

TEST(Mallinfo2Test, FollowsSmallBlocksExactly) {
  std::vector<void*> blocks(10000);
  size_t before = mallinfo2().uordblks;
  for (void*& p : blocks) p = malloc(200);
  EXPECT_EQ(mallinfo2().uordblks - before, blocks.size() * ebb_good_size(200));
  for (void* p : blocks) free(p);
  EXPECT_EQ(mallinfo2().uordblks, before);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(MallinfoTest, SaturatesWhatItsIntFieldsCannotHold) {
  struct mallinfo small = mallinfo();
  EXPECT_GT(small.uordblks, 0);
  EXPECT_LT(small.uordblks, INT_MAX);
  std::vector<void*> blocks = hold(3 * kGiB, 64 * kMiB);
  struct mallinfo full = mallinfo();
  EXPECT_EQ(full.uordblks, INT_MAX);
  EXPECT_EQ(full.arena, INT_MAX);
  EXPECT_GE(full.fordblks, 0);
  for (void* p : blocks) free(p);
  EXPECT_LT(mallinfo().uordblks, INT_MAX);
}
#pragma GCC diagnostic pop

TEST(MallocTrimTest, SaysWhetherMemoryWentBack) {
  // Without the scavenger nobody else can be first.
  ASSERT_TRUE(ebb_option_set("scavenger", 0));
  malloc_trim(0);
  char* p = static_cast<char*>(malloc(20 * kMiB));
  memset(p, 1, 20 * kMiB);
  free(p);
  EXPECT_GE(mallinfo2().keepcost, 20 * kMiB);
  EXPECT_EQ(malloc_trim(0), 1);
  EXPECT_EQ(mallinfo2().keepcost, 0u);
  EXPECT_EQ(malloc_trim(0), 0) << "nothing is left to give back";
  EXPECT_TRUE(ebb_option_set("scavenger", 1));
}

TEST(MallocInfoTest, WritesXmlAndRefusesOptions) {
  char* text = nullptr;
  size_t length = 0;
  FILE* file = open_memstream(&text, &length);
  EXPECT_EQ(malloc_info(0, file), 0);
  EXPECT_EQ(malloc_info(1, file), EINVAL);
  fclose(file);
  std::string xml(text, length);
  free(text);
  EXPECT_EQ(xml.rfind("<malloc version=\"1\">\n", 0), 0u) << xml;
  EXPECT_NE(xml.find("<system type=\"current\" size=\""), std::string::npos) << xml;
  EXPECT_EQ(xml.substr(xml.size() - 10), "</malloc>\n");
}

TEST(MalloptTest, AcceptsWhatGlibcKnowsAndRefusesTheRest) {
  for (int parameter : {M_MXFAST, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_PERTURB, M_ARENA_MAX}) {
    EXPECT_EQ(mallopt(parameter, 1000), 1) << parameter;
  }
  EXPECT_EQ(mallopt(12345, 1), 0);
}

TEST(MallocStatsTest, PrintsToStandardError) {
  testing::internal::CaptureStderr();
  malloc_stats();
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("ebb ", 0), 0u) << text;
  EXPECT_NE(text.find("live_bytes"), std::string::npos) << text;
}

}  // namespace
