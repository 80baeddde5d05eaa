#include "emulator/units/zero_columns.h"

#include <gtest/gtest.h>

#include <string>

namespace laneshift::emulator {
namespace {

// The manual's four worked masks, low bits first.
TEST(ZeroColumns, WorkedExamples) {
  Tcgen05Descriptor shape;
  shape.m = 32;
  shape.n = 64;
  shape.max_column_shift = 16;
  // starts 0,1,2,1; first spans 1,1,0,0; three zero columns, then four used.
  const uint64_t bits = 0x00 | 1 << 8 | 2 << 16 | uint64_t{1} << 24 | uint64_t{3} << 32 | uint64_t{1} << 39 |
                        uint64_t{2} << 40 | uint64_t{3} << 48 | uint64_t{5} << 56;
  const auto mask = DecodeZeroColumns(bits, shape);
  ASSERT_TRUE(mask) << mask.error().message;
  EXPECT_EQ(mask->shift, 5);
  const auto text = [&](int sub) {
    std::string s;
    for (int j = 0; j < 10; ++j) s += mask->zero[static_cast<size_t>(sub * 16 + j)] ? '1' : '0';
    return s;
  };
  EXPECT_EQ(text(0), "1110000111");
  EXPECT_EQ(text(1), "1100001110");
  EXPECT_EQ(text(2), "0011100001");
  EXPECT_EQ(text(3), "0001110000");
  EXPECT_FALSE(DecodeZeroColumns(uint64_t{17} << 56, shape));
  const auto none = DecodeZeroColumns(0, shape);
  ASSERT_TRUE(none);
  for (bool z : none->zero) EXPECT_FALSE(z);
}

}  // namespace
}  // namespace laneshift::emulator
