#include "tools/table.h"

#include <gtest/gtest.h>

namespace laneshift::tools {
namespace {

TEST(Table, AlignsColumnsByCharacters) {
  Table table({{"name"}, {"n", Align::kRight}});
  table.Add({{"αβγδε"}, {"1"}});
  table.Add({{"x"}, {"1000"}});
  EXPECT_EQ(table.Print(false), "name      n\n─────  ────\nαβγδε     1\nx      1000\n");
}

TEST(Table, ColoursOnlyWhenAsked) {
  Table table({{"a"}});
  table.Add({{"bad", Tint::kBad}});
  EXPECT_EQ(table.Print(false).find('\033'), std::string::npos);
  EXPECT_NE(table.Print(true).find("\033[1;31mbad\033[0m"), std::string::npos);
}

TEST(Table, UnitsSuitTheSize) {
  EXPECT_EQ(PrintDuration(0.0123), "12.3 us");
  EXPECT_EQ(PrintDuration(3.14159), "3.14 ms");
  EXPECT_EQ(PrintDuration(123456), "123 s");
  EXPECT_EQ(PrintBytes(100), "100 B");
  EXPECT_EQ(PrintBytes(1536), "1.50 KiB");
  EXPECT_EQ(PrintFixed(1.005, 1), "1.0");
}

}  // namespace
}  // namespace laneshift::tools
