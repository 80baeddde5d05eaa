#include "compiler/emit/mma_descriptor.h"

#include <gtest/gtest.h>

#include <utility>

namespace laneshift::compiler {
namespace {

TEST(MmaDescriptor, EveryFieldStandsWhereTheManualSays) {
  const auto only = [&](auto set) {
    InstructionDescriptor one;
    set(one);
    return one.Bits();
  };
  EXPECT_EQ(only([](auto& x) { x.sparsity_selector = 3; }), 3u);
  EXPECT_EQ(only([](auto& x) { x.sparse = 1; }), 1u << 2);
  EXPECT_EQ(only([](auto& x) { x.saturate = 1; }), 1u << 3);
  EXPECT_EQ(only([](auto& x) { x.d_format = 1; }), 1u << 4);
  EXPECT_EQ(only([](auto& x) { x.a_format = 7; }), 7u << 7);
  EXPECT_EQ(only([](auto& x) { x.b_format = 7; }), 7u << 10);
  EXPECT_EQ(only([](auto& x) { x.transpose_a = 1; }), 1u << 15);
  EXPECT_EQ(only([](auto& x) { x.transpose_b = 1; }), 1u << 16);
  EXPECT_EQ(only([](auto& x) { x.n_over_8 = 32; }), 32u << 17);
  EXPECT_EQ(only([](auto& x) { x.m_over_16 = 16; }), 16u << 24);
  EXPECT_EQ(only([](auto& x) { x.max_shift = 3; }), 3u << 30);
  EXPECT_EQ(InstructionDescriptor{}.Bits(), 0u);
}

TEST(MmaDescriptor, BitsAndFieldsAreTheSame) {
  for (uint32_t bits = 1; bits != 0; bits <<= 1) {
    EXPECT_EQ(InstructionDescriptor::FromBits(bits).Bits(), bits);
  }
  for (uint64_t bits = 1; bits != 0; bits <<= 1) {
    EXPECT_EQ(Tcgen05MatrixDescriptor::FromBits(bits).Bits(), bits);
    EXPECT_EQ(WgmmaMatrixDescriptor::FromBits(bits).Bits(), bits);
  }
}

TEST(MmaDescriptor, AnInstructionsDescriptor) {
  const auto d = InstructionDescriptor::FromBits(InstructionDescriptorBits(
      ir::InstructionOf({.type = DataType::kBf16}, {.type = DataType::kBf16, .mn_major = true}, 128, 256)));
  EXPECT_EQ(d.a_format, 1u);
  EXPECT_EQ(d.n_over_8, 32u);
  EXPECT_EQ(d.m_over_16, 8u);
  EXPECT_EQ(d.transpose_a, 0u);
  EXPECT_EQ(d.transpose_b, 1u);
}

TEST(MmaDescriptor, IntegersAreSummedInS32) {
  ir::MmaInstruction instruction = ir::InstructionOf({.type = DataType::kS8}, {.type = DataType::kU8}, 128, 64);
  instruction.saturates = true;
  const auto d = InstructionDescriptor::FromBits(InstructionDescriptorBits(instruction));
  EXPECT_EQ(d.d_format, 2u);
  EXPECT_EQ(d.a_format, 1u);
  EXPECT_EQ(d.b_format, 0u);
  EXPECT_EQ(d.saturate, 1u);
}

// PTX ISA, "Instruction descriptor", types of kinds f8f6f4 and mxf8f6f4: E4M3 0, E5M2 1, E2M3 3, E3M2 4, E2M1 5.
TEST(MmaDescriptor, NarrowTypesHaveTheirCodes) {
  const std::pair<DataType, uint32_t> codes[] = {
      {DataType::kE4m3, 0}, {DataType::kE5m2, 1}, {DataType::kE2m3, 3}, {DataType::kE3m2, 4}, {DataType::kE2m1, 5}};
  for (const auto& [a, a_code] : codes) {
    for (const auto& [b, b_code] : codes) {
      const uint32_t types = a_code << 7 | b_code << 10;
      EXPECT_EQ(InstructionDescriptorBits(ir::InstructionOf({.type = a}, {.type = b}, 128, 128)),
                types | 1u << 4 | 16u << 17 | 8u << 24);
      if (a == DataType::kE2m1 && b == DataType::kE2m1) continue;
      EXPECT_EQ(InstructionDescriptorBits(ir::InstructionOf({.type = a}, {.type = b}, 128, 128, kMxRun)),
                types | 16u << 17 | 1u << 23 | 1u << 27);
    }
  }
}

// Worked by hand: bits 0 and 2 (selector 1, sparse), f32 sums, bf16, N = 128, M = 128.
TEST(MmaDescriptor, ASparseInstructionSelectsAColumnOfMetadata) {
  ir::MmaInstruction instruction =
      ir::InstructionOf({.type = DataType::kBf16}, {.type = DataType::kBf16}, 128, 128).Sparse();
  EXPECT_EQ(instruction.k, 32);
  instruction.selector = 1;
  EXPECT_EQ(InstructionDescriptorBits(instruction), 0x08200495u);
}

// The fields of kinds with scale factors have other positions (PTX ISA, "Instruction descriptor", kind mxf8f6f4).
TEST(MmaDescriptor, ScaleFactorsHaveFieldsOfTheirOwn) {
  ir::MmaInstruction instruction =
      ir::InstructionOf({.type = DataType::kE4m3}, {.type = DataType::kE5m2}, 256, 128, 32);
  instruction.scale_byte = 3;
  EXPECT_EQ(ir::InfoOf(instruction.kind).text, "mxf8f6f4");
  const uint32_t bits = InstructionDescriptorBits(instruction);
  EXPECT_EQ(bits, 3u << 4 | 1u << 10 | 16u << 17 | 1u << 23 | 2u << 27 | 3u << 29);
  EXPECT_EQ(ScaledInstructionDescriptor::FromBits(bits).Bits(), bits);
}

// Bit 2, and twice the K; metadata of these kinds needs no selector.
TEST(MmaDescriptor, ASparseAHasScaleFactorsToo) {
  const ir::MmaInstruction dense =
      ir::InstructionOf({.type = DataType::kE2m1}, {.type = DataType::kE2m1}, 256, 256, kNvRun);
  ir::MmaInstruction sparse = dense.Sparse();
  EXPECT_EQ(sparse.k, 128);
  sparse.selector = 1;
  EXPECT_EQ(InstructionDescriptorBits(dense), 0x10400480u);
  EXPECT_EQ(InstructionDescriptorBits(sparse), 0x10400484u);
}

// Bit 31: 96 elements of K.
TEST(MmaDescriptor, LongRowsAreOfFourBits) {
  ir::MmaInstruction instruction =
      ir::InstructionOf({.type = DataType::kE2m1}, {.type = DataType::kE2m1}, 128, 128, kNvRun);
  EXPECT_FALSE(instruction.HasLongRows());
  instruction.k = 96;
  EXPECT_TRUE(instruction.HasLongRows());
  EXPECT_EQ(InstructionDescriptorBits(instruction), 0x88200480u);
}

TEST(MmaDescriptor, ATilesDescriptorIsOfItsTarget) {
  const ir::SharedLayout tile{.type = DataType::kBf16,
                              .outer_axis = ir::Axis::kM,
                              .inner_axis = ir::Axis::kK,
                              .outer = 128,
                              .inner = 64,
                              .swizzle = ir::Swizzle::k128};
  const auto blackwell =
      Tcgen05MatrixDescriptor::FromBits(MatrixDescriptorBits(tile, target::MatrixDescriptorFormat::kTcgen05));
  EXPECT_EQ(blackwell.stride_over_16, 1024u / 16);
  EXPECT_EQ(blackwell.version, 1u);
  EXPECT_EQ(blackwell.swizzle, 2u);
  const auto hopper =
      WgmmaMatrixDescriptor::FromBits(MatrixDescriptorBits(tile, target::MatrixDescriptorFormat::kWgmma));
  EXPECT_EQ(hopper.stride_over_16, 1024u / 16);
  EXPECT_EQ(hopper.swizzle, 1u);
}

}  // namespace
}  // namespace laneshift::compiler
