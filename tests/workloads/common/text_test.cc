// Formatting without allocation: numbers, escapes, and what happens when a buffer is full.
#include "common/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace tidemark {
namespace {

std::string number(double value) {
  Text text;
  return std::string(text.add_number(value).view());
}

TEST(Text, WritesWholeNumbers) {
  Text text;
  text.add_unsigned(0).add(" ").add_unsigned(UINT64_MAX);
  EXPECT_EQ(text.view(), "0 18446744073709551615");
}

TEST(Text, WritesSixteenHexadecimalDigits) {
  Text text;
  EXPECT_EQ(text.add_hex16(0xfedcba9876543210u).view(), "fedcba9876543210");
  text.clear();
  EXPECT_EQ(text.add_hex16(1).view(), "0000000000000001");
}

TEST(Text, WritesDecimalsWithoutTrailingZeros) {
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(1.5), "1.5");
  EXPECT_EQ(number(-2.25), "-2.25");
  EXPECT_EQ(number(0.000001), "0.000001");
  EXPECT_EQ(number(12.050), "12.05");
  EXPECT_EQ(number(4294967296.0), "4294967296");
}

TEST(Text, RoundsToSixDecimals) {
  EXPECT_EQ(number(0.0000004), "0");
  EXPECT_EQ(number(0.9999996), "1");
  EXPECT_EQ(number(1.0 / 3.0), "0.333333");
}

TEST(Text, EscapesStringsForJson) {
  Text text;
  EXPECT_EQ(text.add_json_string("a\"b\\c\n\x01/é").view(), "\"a\\\"b\\\\c\\u000a\\u0001/é\"");
}

TEST(Text, SaysWhenItIsFull) {
  Text text;
  text.add(std::string(Text::kCapacityBytes, 'x'));
  EXPECT_FALSE(text.truncated());
  text.add("y");
  EXPECT_TRUE(text.truncated());
  EXPECT_EQ(text.view().size(), Text::kCapacityBytes);
  text.clear();
  EXPECT_FALSE(text.truncated());
  EXPECT_TRUE(text.view().empty());
}

TEST(WriteAll, ReportsAClosedDescriptor) {
  EXPECT_FALSE(write_all(-1, "x"));
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(write_all(-1, ""));
}

}  // namespace
}  // namespace tidemark
