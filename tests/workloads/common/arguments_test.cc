// Arguments: defaults stay, values arrive, and everything else ends with exit code 2.
#include "common/arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/exits.h"

namespace tidemark {
namespace {

struct Parsed {
  std::uint64_t count = 7;
  std::uint64_t shape = 1;
};

constexpr const char* kShapes[] = {"flat", "round"};

Parsed parse(std::vector<std::string> words) {
  Parsed parsed;
  const Option table[] = {
      integer("--count", parsed.count, 2, 90, "things"),
      choice("--shape", parsed.shape, kShapes, "how"),
  };
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  parse_arguments("program", "Does things.", table, static_cast<int>(argv.size()), argv.data());
  return parsed;
}

TEST(Arguments, KeepDefaultsAndTakeValues) {
  EXPECT_EQ(parse({}).count, 7u);
  EXPECT_EQ(parse({"--count", "2"}).count, 2u);
  EXPECT_EQ(parse({"--count", "90", "--shape", "flat"}).shape, 0u);
  EXPECT_EQ(parse({"--count", "3", "--count", "4"}).count, 4u) << "the last one holds";
}

TEST(ArgumentsDeathTest, RefuseWhatIsOutOfRange) {
  const auto refused = testing::ExitedWithCode(kExitUsage);
  EXPECT_EXIT(parse({"--count", "1"}), refused, "^program: --count needs a whole number from 2 to 90, not \"1\"");
  EXPECT_EXIT(parse({"--count", "91"}), refused, "not \"91\"; see program --help.\n$");
  EXPECT_EXIT(parse({"--count", "18446744073709551623"}), refused, "not \"18446744073709551623\"");
  EXPECT_EXIT(parse({"--shape", "2"}), refused, "--shape needs one of flat, round, not \"2\"");
  EXPECT_EXIT(parse({"--shape"}), refused, "--shape needs one of flat, round;");
  EXPECT_EXIT(parse({"--size", "2"}), refused, "there is no option \"--size\"");
}

}  // namespace
}  // namespace tidemark
