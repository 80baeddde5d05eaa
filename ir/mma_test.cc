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

TEST(Mma, NarrowTypesMixWithEachOtherAndWithEightBitOnes) {
  constexpr DataType kTypes[] = {DataType::kE4m3, DataType::kE5m2, DataType::kE2m3, DataType::kE3m2, DataType::kE2m1};
  for (const DataType a : kTypes) {
    for (const DataType b : kTypes) {
      EXPECT_EQ(MmaKindOf(a, b), MmaKind::kF8f6f4) << DataTypeName(a) << DataTypeName(b);
      const bool both = a == DataType::kE2m1 && b == DataType::kE2m1;
      EXPECT_EQ(MmaKindOf(a, b, kMxRun), both ? MmaKind::kMxf4 : MmaKind::kMxf8f6f4);
      EXPECT_EQ(MmaKindOf(a, b, kMxRun, 8), MmaKind::kMxf8f6f4) << "of elements that take 8 bits in shared memory";
      EXPECT_EQ(MmaKindOf(a, b, kNvRun), both ? std::optional(MmaKind::kMxf4nvf4) : std::nullopt);
    }
    EXPECT_EQ(MmaKindOf(a, DataType::kBf16), std::nullopt);
    EXPECT_EQ(MmaKindOf(a, DataType::kS8), std::nullopt);
  }
  EXPECT_EQ(OperandPairs(kMxRun), "each e4m3, e5m2, e2m3, e3m2 or e2m1");
  EXPECT_EQ(OperandPairs(kNvRun), "both e2m1");
}

TEST(Mma, TypesNarrowerThanTheKindsElementsArePadded) {
  EXPECT_TRUE(IsPadded(MmaKind::kF8f6f4, DataType::kE2m1));
  EXPECT_TRUE(IsPadded(MmaKind::kMxf8f6f4, DataType::kE3m2));
  EXPECT_FALSE(IsPadded(MmaKind::kMxf8f6f4, DataType::kE4m3));
  EXPECT_FALSE(IsPadded(MmaKind::kMxf4, DataType::kE2m1));
}

// PTX ISA, "Kinds": K of each.
TEST(Mma, OneInstructionTakes32BytesOfARow) {
  EXPECT_EQ(InfoOf(MmaKind::kF16).Depth(), 16);
  EXPECT_EQ(InfoOf(MmaKind::kTf32).Depth(), 8);
  EXPECT_EQ(InfoOf(MmaKind::kF8f6f4).Depth(), 32);
  EXPECT_EQ(InfoOf(MmaKind::kMxf8f6f4).Depth(), 32);
  EXPECT_EQ(InfoOf(MmaKind::kMxf4).Depth(), 64);
  EXPECT_EQ(InfoOf(MmaKind::kMxf4nvf4).Depth(), 64);
  EXPECT_EQ(InfoOf(MmaKind::kI8).Depth(), 32);
}

TEST(Mma, AnInstructionHasTheShapeOfItsKind) {
  const MmaInstruction e4m3 = InstructionOf({DataType::kE4m3}, {DataType::kE5m2, true}, 128, 64);
  EXPECT_EQ(e4m3.kind, MmaKind::kF8f6f4);
  EXPECT_EQ(e4m3.k, 32);
  EXPECT_TRUE(e4m3.b.mn_major);
}

}  // namespace
}  // namespace laneshift::ir
