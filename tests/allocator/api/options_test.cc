// Options: by name, from the environment, and their ranges.
#include <ebb/ebb.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/options.h"

namespace {

constexpr size_t kCount = static_cast<size_t>(ebb::Option::kCount);

// Puts every option back behind a test.
class OptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < kCount; ++i) {
      int64_t value = 0;
      ASSERT_TRUE(ebb_option_get(ebb::option_info(i).name, &value));
      before_.push_back(value);
    }
  }
  void TearDown() override {
    for (size_t i = 0; i < kCount; ++i) EXPECT_TRUE(ebb_option_set(ebb::option_info(i).name, before_[i]));
  }

  static int64_t get(const char* name) {
    int64_t value = -1;
    EXPECT_TRUE(ebb_option_get(name, &value)) << name;
    return value;
  }

 private:
  std::vector<int64_t> before_;
};

std::vector<std::string>* g_complaints;

void complain(const char* variable, const char* value) { g_complaints->push_back(std::string(variable) + "=" + value); }

// Loads from an environment made of `entries`; returns what was complained of.
std::vector<std::string> load(std::vector<std::string> entries) {
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  std::vector<std::string> complaints;
  g_complaints = &complaints;
  ebb::options_load(environment.data(), complain);
  return complaints;
}

TEST_F(OptionsTest, WhatIsSetIsWhatIsGot) {
  EXPECT_TRUE(ebb_option_set("purge_delay_ms", 250));
  EXPECT_EQ(get("purge_delay_ms"), 250);
  EXPECT_TRUE(ebb_option_set("purge_delay_ms", 0));
  EXPECT_EQ(get("purge_delay_ms"), 0);
}

TEST_F(OptionsTest, UnknownNamesAreRefused) {
  int64_t value = 77;
  for (const char* name : {"", "purge_delay", "purge_delay_ms ", "PURGE_DELAY_MS", "EBB_PURGE_DELAY_MS"}) {
    EXPECT_FALSE(ebb_option_get(name, &value)) << name;
    EXPECT_FALSE(ebb_option_set(name, 1)) << name;
  }
  EXPECT_FALSE(ebb_option_get(nullptr, &value));
  EXPECT_FALSE(ebb_option_set(nullptr, 1));
  EXPECT_EQ(value, 77);
}

TEST_F(OptionsTest, EachRangeIsKept) {
  for (size_t i = 0; i < kCount; ++i) {
    const ebb::OptionInfo& info = ebb::option_info(i);
    int64_t before = get(info.name);
    EXPECT_FALSE(ebb_option_set(info.name, info.low - 1)) << info.name;
    EXPECT_FALSE(ebb_option_set(info.name, info.high + 1)) << info.name;
    EXPECT_EQ(get(info.name), before) << info.name;
    EXPECT_TRUE(ebb_option_set(info.name, info.low)) << info.name;
    EXPECT_TRUE(ebb_option_set(info.name, info.high)) << info.name;
    EXPECT_EQ(get(info.name), info.high);
    EXPECT_TRUE(ebb_option_set(info.name, before));
  }
}

TEST_F(OptionsTest, TheEnvironmentSetsNumbersAndWords) {
  EXPECT_TRUE(load({"PATH=/bin", "EBB_PURGE_DELAY_MS=321", "EBB_SCAVENGER=eager", "EBB_THP=auto", "EBB_=1"}).empty());
  EXPECT_EQ(get("purge_delay_ms"), 321);
  EXPECT_EQ(get("scavenger"), 2);
  EXPECT_EQ(get("thp"), 1);
}

TEST_F(OptionsTest, ValuesThatCannotBeUsedAreComplainedOfAndLeaveTheOption) {
  int64_t before = get("purge_delay_ms");
  const std::string kBad[] = {
      "", "-1", "1x", "x", " 1", "0x10", "1.5", "on", "+10", "3600001", "99999999999999999999", "9223372036854775807"};
  for (const std::string& value : kBad) {
    std::vector<std::string> complaints = load({"EBB_PURGE_DELAY_MS=" + value});
    EXPECT_EQ(complaints, std::vector<std::string>{"purge_delay_ms=" + value}) << value;
    EXPECT_EQ(get("purge_delay_ms"), before) << value;
  }
}

TEST_F(OptionsTest, OnlyWholeNamesInCapitalsCount) {
  int64_t before = get("purge_delay_ms");
  load({"EBB_purge_delay_ms=5", "EBB_PURGE_DELAY_MSX=6", "EBB_PURGE_DELAY_M=7", "XEBB_PURGE_DELAY_MS=8",
        "EBB_PURGE_DELAY_MS"});
  EXPECT_EQ(get("purge_delay_ms"), before);
}

TEST_F(OptionsTest, AWordBelongsToItsOption) {
  int64_t value = -1;
  size_t thp = static_cast<size_t>(ebb::Option::k_thp);
  EXPECT_TRUE(ebb::option_parse(thp, "full", &value));
  EXPECT_EQ(value, 2);
  EXPECT_FALSE(ebb::option_parse(thp, "eager", &value));
  EXPECT_FALSE(ebb::option_parse(static_cast<size_t>(ebb::Option::k_purge_delay_ms), "off", &value));
}

TEST_F(OptionsTest, NoEnvironmentAtAllIsFine) {
  ebb::options_load(nullptr, complain);
  EXPECT_TRUE(load({}).empty());
}

}  // namespace
