// Options: each by its declaration, from text, from an environment.
#include "config/options.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace ebb {
namespace {

constexpr size_t kCount = static_cast<size_t>(Option::kCount);

class Options : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < kCount; ++i) before_.push_back(g_options[i].load());
    complaints_.clear();
  }
  void TearDown() override {
    for (size_t i = 0; i < kCount; ++i) g_options[i].store(before_[i]);
  }
  void load(std::vector<std::string> variables) {
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    options_load(environment.data(), [](const char* name, const char* value) {
      complaints_.push_back(std::string(name) + "=" + value);
    });
  }
  static int64_t value(const char* name) { return g_options[static_cast<size_t>(option_find(name))].load(); }

  std::vector<int64_t> before_;
  static inline std::vector<std::string> complaints_;
};

TEST_F(Options, EveryDeclarationHasANameARangeAndADoc) {
  for (size_t i = 0; i < kCount; ++i) {
    const OptionInfo& info = option_info(i);
    EXPECT_EQ(option_find(info.name), static_cast<int>(i));
    EXPECT_LE(info.low, info.standard) << info.name;
    EXPECT_LE(info.standard, info.high) << info.name;
    EXPECT_GT(strlen(info.doc), 20u) << info.name;
    for (const char* c = info.name; *c != '\0'; ++c) EXPECT_TRUE(*c == '_' || (*c >= 'a' && *c <= 'z')) << info.name;
  }
  EXPECT_EQ(option_find("no_such_option"), -1);
  EXPECT_EQ(option_find(""), -1);
}

TEST_F(Options, ValuesOutsideTheRangeChangeNothing) {
  for (size_t i = 0; i < kCount; ++i) {
    const OptionInfo& info = option_info(i);
    int64_t before = g_options[i].load();
    EXPECT_FALSE(option_set(i, info.low - 1)) << info.name;
    EXPECT_FALSE(option_set(i, info.high + 1)) << info.name;
    EXPECT_EQ(g_options[i].load(), before);
    EXPECT_TRUE(option_set(i, info.high));
    EXPECT_EQ(g_options[i].load(), info.high);
    EXPECT_TRUE(option_set(i, info.low));
  }
}

TEST_F(Options, ParsesNumbersAndTheOptionsOwnWords) {
  size_t scavenger = static_cast<size_t>(option_find("scavenger"));
  size_t delay = static_cast<size_t>(option_find("purge_delay_ms"));
  int64_t value = -1;
  EXPECT_TRUE(option_parse(scavenger, "eager", &value));
  EXPECT_EQ(value, 2);
  EXPECT_TRUE(option_parse(delay, "0250", &value));
  EXPECT_EQ(value, 250);
  for (const char* text : {"", "eager", "-1", "1.5", "10ms", " 10", "0x10", "99999999999999999999999"}) {
    value = 7;
    EXPECT_FALSE(option_parse(delay, text, &value)) << text;
    EXPECT_EQ(value, 7) << text;
  }
}

TEST_F(Options, ReadsTheEnvironment) {
  load({"PATH=/bin", "EBB_PURGE_DELAY_MS=20", "EBB_SCAVENGER=off", "NOTEBB_VERBOSE=1"});
  EXPECT_EQ(value("purge_delay_ms"), 20);
  EXPECT_EQ(value("scavenger"), 0);
  EXPECT_EQ(value("verbose"), 0);
  EXPECT_TRUE(complaints_.empty());
  options_load(nullptr, nullptr);
}

TEST_F(Options, ComplainsOfWhatCannotBeUsedAndKeepsTheDefault) {
  int64_t before = value("purge_delay_ms");
  load({"EBB_PURGE_DELAY_MS=soon", "EBB_PURGE_DELAY_MS=-5", "EBB_SCAVENGER=7"});
  EXPECT_EQ(value("purge_delay_ms"), before);
  EXPECT_EQ(complaints_, (std::vector<std::string>{"purge_delay_ms=soon", "purge_delay_ms=-5", "scavenger=7"}));
}

TEST_F(Options, VariablesOfOtherNamesAreLeftAlone) {
  std::vector<int64_t> before;
  for (size_t i = 0; i < kCount; ++i) before.push_back(g_options[i].load());
  load({"EBB_", "EBB_=1", "EBB_PURGE_DELAY=1", "EBB_PURGE_DELAY_MSX=1", "ebb_verbose=1", "EBB_purge_delay_ms=1",
        "EBB_PURGE_DELAY_MS"});
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(g_options[i].load(), before[i]) << option_info(i).name;
}

}  // namespace
}  // namespace ebb
