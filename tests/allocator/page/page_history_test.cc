// Random histories of one page: carving, handing out, freeing by its owner and by others, punching holes and filling
// them. The contents of every live block are checked to the byte, and the page says after each step that it is valid.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "page/remote.h"
#include "page_bench.h"

namespace ebb::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 1500;
#else
constexpr int kSteps = 5000;
#endif

class PageHistory {
 public:
  PageHistory(size_t block_bytes, unsigned seed) : bench_(block_bytes), random_(seed) {}

  void run() {
    for (int step = 0; step < kSteps && !testing::Test::HasFatalFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step << ", blocks of " << page()->block_bytes);
      one_step();
      ASSERT_TRUE(page_is_valid(page()));
      ASSERT_EQ(page()->countdown, live_.size() + pushed_.size());
    }
    finish();
  }

 private:
  Page* page() { return bench_.page(); }
  uint32_t below(size_t bound) { return static_cast<uint32_t>(random_() % bound); }

  void one_step() {
    switch (below(8)) {
      case 0: return carve();
      case 1: case 2: return hand_out();
      case 3: case 4: return free_some(false);
      case 5: return free_some(true);
      case 6: return fold();
      default: return below(3) == 0 ? punch() : fill();
    }
  }
  void carve() {
    if (page()->carved != page()->capacity) page_carve(page(), 1 + below(page()->capacity / 4 + 1));
  }
  void hand_out() {
    for (uint32_t count = 1 + below(page()->capacity / 2); count > 0; --count) {
      Block* block = bench_.pop();
      if (block == nullptr) return;
      ASSERT_TRUE(page_is_block(page(), block));
      ASSERT_TRUE(live_.insert(block).second) << "handed out twice";
      ASSERT_EQ(pushed_.count(block), 0u);
      fill_block(block);
    }
  }
  void free_some(bool by_others) {
    // Often most of them, so that OS pages become empty.
    size_t keep = below(3) == 0 ? 0 : below(live_.size() + 1);
    while (live_.size() > keep) {
      auto at = live_.begin();
      std::advance(at, below(live_.size()));
      Block* block = *at;
      check_block(block);
      live_.erase(at);
      if (by_others) {
        ASSERT_FALSE(remote::push(page(), block)) << "an owned page can't be claimed";
        pushed_.insert(block);
      } else {
        bench_.push_local(block);
      }
    }
  }
  void fold() {
    ASSERT_EQ(page_fold_remote(page()), pushed_.size());
    pushed_.clear();
  }
  void punch() {
    fold();
    page_punch_holes(page());
    for (Block* block : live_) check_block(block);
    // Nothing that is left on the list lies in what was given back, and nothing is free and resident in vain.
    for (Block* block = page()->free; block != nullptr; block = block->next) ASSERT_TRUE(page_is_block(page(), block));
  }
  void fill() {
    if (page()->hole_blocks == 0) return;
    Block* before = page()->free;
    page_fill_hole(page());
    ASSERT_TRUE(before != nullptr || page()->free != nullptr) << "holes are filled until there is a block";
  }
  void finish() {
    free_some(false);
    for (Block* block : std::vector<Block*>(live_.begin(), live_.end())) {
      check_block(block);
      bench_.push_local(block);
    }
    fold();
    while (page()->hole_blocks != 0) page_fill_hole(page());
    std::set<Block*> all;
    while (Block* block = bench_.pop()) ASSERT_TRUE(all.insert(block).second);
    EXPECT_EQ(all.size(), page()->carved) << "every carved block is there once";
  }

  unsigned char mark_of(Block* block) { return static_cast<unsigned char>(bench_.index_of(block) * 37 + 11); }
  void fill_block(Block* block) { memset(static_cast<void*>(block), mark_of(block), page()->block_bytes); }
  void check_block(Block* block) {
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(block);
    // Equal to itself shifted by a byte: all bytes are the first one.
    ASSERT_TRUE(bytes[0] == mark_of(block) && memcmp(bytes, bytes + 1, page()->block_bytes - 1) == 0)
        << "contents of block " << bench_.index_of(block);
  }

  PageBench bench_;
  std::mt19937 random_;
  std::set<Block*> live_;
  std::set<Block*> pushed_;  // freed by others, not yet folded in
};

void run_sizes(std::initializer_list<size_t> sizes, unsigned seed) {
  for (size_t bytes : sizes) PageHistory(bytes, seed++).run();
}

TEST(PageHistory, OsPagesOf4KiB) { run_sizes({16, 48, 160, 640, 1024, 2560, 4096, 5120, 8192, 12288, 32768, 65536}, 1); }

TEST(PageHistory, OsPagesOf16KiB) {
  OsPageBytes larger(16 * KiB);
  run_sizes({64, 1024, 4096, 8192, 16384, 20480, 65536}, 100);
}

TEST(PageHistory, OsPagesOf64KiB) {
  OsPageBytes larger(64 * KiB);
  run_sizes({64, 1024, 8192, 16384, 40960, 65536}, 200);
}

}  // namespace
}  // namespace ebb::test
