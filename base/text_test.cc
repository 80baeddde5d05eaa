#include "base/text.h"

#include <gtest/gtest.h>

namespace laneshift::base {
namespace {

TEST(Cat, PrintsAsAStreamDoes) {
  const char* text = "a";
  enum Plain { kSeven = 7 };
  EXPECT_EQ(
      Cat(text, std::string("b"), std::string_view("c"), 'd', 1, -2L, 3u, uint64_t{1} << 63, true, 1.5, 2.0f, kSeven),
      "abcd1-2392233720368547758081"
      "1.527");
  EXPECT_EQ(Cat(), "");
}

TEST(Split, KeepsEmptyFields) {
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Words, AreSeparatedByAnyBlanks) {
  EXPECT_EQ(Words("  a\tb \n c"), (std::vector<std::string_view>{"a", "b", "c"}));
  EXPECT_TRUE(Words(" \t").empty());
}

TEST(Parse, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(ParseInt("-12"), -12);
  for (const char* bad : {"", " 1", "1 ", "+1", "0x10", "1e3", "99999999999999999999"})
    EXPECT_FALSE(ParseInt(bad)) << bad;
  EXPECT_EQ(ParseDouble("-0.25"), -0.25);
  for (const char* bad : {"", "nan", "inf", "1.0x", "1e999"}) EXPECT_FALSE(ParseDouble(bad)) << bad;
}

TEST(HexOf, HasTwoDigitsForEachByte) {
  EXPECT_EQ(HexOf(""), "");
  EXPECT_EQ(HexOf(std::string_view("\x00\x0f\xa0\xff", 4)), "000fa0ff");
}

TEST(PrintDouble, ReadsBackExactly) {
  for (const double value : {0.0, 0.1, -1.5, 1e300, 3.0}) EXPECT_EQ(ParseDouble(PrintDouble(value)), value);
  EXPECT_EQ(PrintDouble(0.1), "0.1");
}

TEST(NearestName, OffersLikelyMistakesOnly) {
  const std::vector<std::string_view> known = {"stages", "tile", "m"};
  EXPECT_EQ(NearestName("stage", known), "stages");
  EXPECT_EQ(NearestName("tiel", known), "tile");
  EXPECT_EQ(NearestName("TILE", known), "tile");
  EXPECT_EQ(NearestName("zz", known), std::nullopt);
  EXPECT_EQ(NearestName("n", known), std::nullopt);
  EXPECT_EQ(NearestName("M", known), "m");
}

}  // namespace
}  // namespace laneshift::base
