#include "ir/row_steps.h"

#include <gtest/gtest.h>

namespace laneshift::ir {
namespace {

TEST(RowSteps, WidthsGoDownToHalfOfTheTile) {
  EXPECT_EQ(ProductWidths(192), (std::vector<int>{192, 168, 144, 120, 96}));
  EXPECT_EQ(LeastRows(192, true), 96);
  EXPECT_EQ(LeastRows(192, false), 64);
  EXPECT_EQ(LeastRows(32, false), 32);
}

TEST(RowSteps, CopiesMakeUpTheTile) {
  for (const bool along_n : {false, true}) {
    for (int rows = 8; rows <= 256; rows += 8) {
      const int copied = RowsOfCopy(rows, along_n);
      EXPECT_EQ(rows % copied, 0) << rows;
      EXPECT_EQ(copied % 8, 0) << rows << ": copies begin with the pattern of a swizzle";
      EXPECT_TRUE(copied == rows || copied >= 32) << rows;
    }
  }
  EXPECT_EQ(RowsOfCopy(192, false), 64);
  EXPECT_EQ(RowsOfCopy(96, false), 96) << "half of the rows, which each of two CTAs brings";
  EXPECT_EQ(RowsOfCopy(192, true), 48);
  EXPECT_EQ(RowsOfCopy(176, true), 88);
  EXPECT_EQ(RowsOfCopy(96, true), 96) << "few rows come by one copy";
}

}  // namespace
}  // namespace laneshift::ir
