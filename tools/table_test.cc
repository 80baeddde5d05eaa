#include "tools/table.h"

#include <gtest/gtest.h>

namespace laneshift::tools {
namespace {

TEST(TextTable, AlignsColumnsByCharacters) {
  TextTable table({{"name"}, {"n", Align::kRight}});
  table.Add({{"αβγδε"}, {"1"}});
  table.Add({{"x"}, {"1000"}});
  EXPECT_EQ(table.Print({}), "name      n\n─────  ────\nαβγδε     1\nx      1000\n");
}

TEST(TextTable, ColoursOnlyWhenAsked) {
  TextTable table({{"a"}});
  table.Add({{"bad", Tint::kBad}});
  EXPECT_EQ(table.Print({}).find('\033'), std::string::npos);
  EXPECT_NE(table.Print({.colour = true}).find("\033[1;31mbad\033[0m"), std::string::npos);
}

TEST(TextTable, LongCellsTakeLinesOfTheirOwnWhereRowsDoNotFit) {
  TextTable table({{"problem", Align::kLeft, Room::kLong}, {"ok"}, {"time", Align::kRight}});
  table.Add({{"gemm m=16 n=1024 k=4096 a=bf16"}, {"yes"}, {"12.3 us"}});
  EXPECT_EQ(table.Print({.width = 44}),
            "problem                         ok      time\n"
            "──────────────────────────────  ───  ───────\n"
            "gemm m=16 n=1024 k=4096 a=bf16  yes  12.3 us\n");
  EXPECT_EQ(table.Print({.width = 20}),
            "problem\n  ok      time\n  ───  ───────\ngemm m=16 n=1024\n    k=4096 a=bf16\n  yes  12.3 us\n");
}

TEST(TextTable, ALongLastColumnIsWrappedWhereItHasRoom) {
  TextTable table({{"part"}, {"what", Align::kLeft, Room::kLong}});
  table.Add({{"ptxas"}, {"without it the driver compiles PTX; install the CUDA toolkit"}});
  EXPECT_EQ(table.Print({.width = 50}),
            "part   what\n─────  ───────────────────────────────────────────\n"
            "ptxas  without it the driver compiles PTX; install\n       the CUDA toolkit\n");
  EXPECT_EQ(
      table.Print({.width = 30}),
      "part\n    what\n─────\nptxas\n    without it the driver\n      compiles PTX; install\n      the CUDA toolkit\n");
}

TEST(TextTable, ColumnsThatDoNotFitAreATableOfTheirOwn) {
  TextTable table({{"mode"}, {"aaaa"}, {"bbbb"}, {"cccc"}});
  table.Add({{"x"}, {"1"}, {"2"}, {"3"}});
  EXPECT_EQ(table.Print({.width = 16}),
            "mode  aaaa  bbbb\n────  ────  ────\nx     1     2\n\nmode  cccc\n────  ────\nx     3\n");
}

TEST(TextTable, UnitsSuitTheSize) {
  EXPECT_EQ(PrintDuration(0.0123), "12.3 us");
  EXPECT_EQ(PrintDuration(3.14159), "3.14 ms");
  EXPECT_EQ(PrintDuration(123456), "123 s");
  EXPECT_EQ(PrintBytes(100), "100 B");
  EXPECT_EQ(PrintBytes(1536), "1.50 KiB");
  EXPECT_EQ(PrintFixed(1.005, 1), "1.0");
}

}  // namespace
}  // namespace laneshift::tools
