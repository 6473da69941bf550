// A heap profile for the duration of a test, with hooks that note what they are told.
#pragma once

#include <ebb/ebb.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "heap/sampling.h"
#include "stats/counters.h"

namespace ebb::test {

// With so small a mean every block is sampled: a block of 16 bytes is not with a probability of 1e-7, and the seed is
// fixed.
constexpr size_t kEveryBlock = 1;

class Profiled : public testing::Test {
 protected:
  void SetUp() override { ebb_profile_hooks_set(on_alloc, on_free, this); }
  void TearDown() override {
    ebb_profile_stop();
    ebb_profile_hooks_set(nullptr, nullptr, nullptr);
    sampling_seed_for_test(0);
    EXPECT_EQ(frees_unknown_, 0) << "a free was told of a sample that is not live";
  }

  void start(size_t mean_bytes, uint64_t seed = 20240517) {
    // What the lists of the thread hold was not counted: given up, each block from here on is.
    ebb_collect(false);
    sampling_seed_for_test(seed);
    ASSERT_TRUE(ebb_profile_start(mean_bytes));
  }

  bool is_live(const void* block) {
    std::lock_guard<std::mutex> guard(mutex_);
    return live_.count(block) != 0;
  }
  size_t live_count() {
    std::lock_guard<std::mutex> guard(mutex_);
    return live_.size();
  }
  const void* last_sampled() const { return last_sampled_; }  // by this thread, when only this one allocates
  size_t taken() const { return taken_; }
  size_t ended() const { return ended_; }
  double weight() const { return weight_; }

 private:
  static void on_alloc(const ebb_sample_t* sample, void* arg) {
    Profiled* self = static_cast<Profiled*>(arg);
    std::lock_guard<std::mutex> guard(self->mutex_);
    self->last_sampled_ = sample->block;
    self->live_[sample->block] = sample->id;
    self->weight_ += static_cast<double>(sample->weight_bytes);
    ++self->taken_;
  }
  static void on_free(const ebb_sample_t* sample, void* arg) {
    Profiled* self = static_cast<Profiled*>(arg);
    std::lock_guard<std::mutex> guard(self->mutex_);
    auto found = self->live_.find(sample->block);
    if (found == self->live_.end() || found->second != sample->id) {
      ++self->frees_unknown_;
      return;
    }
    self->live_.erase(found);
    ++self->ended_;
  }

  std::mutex mutex_;
  std::map<const void*, uint64_t> live_;
  const void* last_sampled_ = nullptr;
  size_t taken_ = 0, ended_ = 0;
  int frees_unknown_ = 0;
  double weight_ = 0;
};

// What ebb_profile_write writes; empty when it fails.
inline std::string written_profile() {
  int fd = memfd_create("profile", 0);
  std::string text;
  if (ebb_profile_write(fd)) {
    text.resize(static_cast<size_t>(lseek(fd, 0, SEEK_END)));
    if (pread(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) text.clear();
  }
  close(fd);
  return text;
}

// The samples of a profile's text as lines, after the header was checked against them.
struct ParsedProfile {
  bool valid = false;
  size_t samples = 0, bytes = 0, mean = 0;

  explicit ParsedProfile(const std::string& text) {
    unsigned long count, total, count_again, total_again;
    int at = 0;
    if (sscanf(text.c_str(), "heap profile: %lu: %lu [%lu: %lu] @ heap_v2/%zu\n%n", &count, &total, &count_again,
               &total_again, &mean, &at) != 5) {
      return;
    }
    size_t position = static_cast<size_t>(at);
    size_t end = text.find("\n\nMAPPED_LIBRARIES:\n");
    if (end == std::string::npos) end = text.find("\nMAPPED_LIBRARIES:\n");
    while (end != std::string::npos && position < end) {
      size_t next = text.find('\n', position);
      unsigned long one, size, again, size_again;
      std::string line = text.substr(position, next - position);
      if (sscanf(line.c_str(), "%lu: %lu [%lu: %lu] @", &one, &size, &again, &size_again) != 4) return;
      if (one != 1 || again != 1 || size != size_again) return;
      samples += 1;
      bytes += size;
      position = next + 1;
    }
    valid = end != std::string::npos && count == samples && total == bytes && count == count_again &&
            total == total_again && text.find("[stack]", end) != std::string::npos;
  }
};

}  // namespace ebb::test
