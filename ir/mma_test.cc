#include "ir/mma.h"

#include <gtest/gtest.h>

#include "ir/element_type.h"

namespace laneshift::ir {
namespace {

TEST(Mma, KindsMultiplyTheirTypes) {
  EXPECT_EQ(MmaKindOf(DataType::kBf16, DataType::kBf16), MmaKind::kF16);
  EXPECT_EQ(MmaKindOf(DataType::kE4m3, DataType::kE5m2), MmaKind::kF8f6f4);
  EXPECT_EQ(MmaKindOf(DataType::kF16, DataType::kBf16), std::nullopt) << "one type";
  EXPECT_EQ(MmaKindOf(DataType::kF16, DataType::kE4m3), std::nullopt) << "two kinds";
  EXPECT_EQ(MmaKindOf(DataType::kF32, DataType::kF32), std::nullopt);
}

TEST(Mma, OneInstructionTakes32BytesOfARow) {
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (!MmaKindOf(type)) continue;
    EXPECT_EQ(MmaDepth(type) * BitsOf(type), 256) << DataTypeName(type);
  }
}

TEST(Mma, AnInstructionHasTheShapeOfItsKind) {
  const MmaInstruction e4m3 = InstructionOf({DataType::kE4m3}, {DataType::kE5m2, true}, 128, 64);
  EXPECT_EQ(e4m3.kind, MmaKind::kF8f6f4);
  EXPECT_EQ(e4m3.k, 32);
  EXPECT_TRUE(e4m3.b.mn_major);
}

}  // namespace
}  // namespace laneshift::ir
