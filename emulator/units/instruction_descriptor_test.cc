#include "emulator/units/instruction_descriptor.h"

#include <gtest/gtest.h>

#include <string>

namespace laneshift::emulator {
namespace {

struct Worked {
  uint32_t bits;
  MmaQualifiers qualifiers;
  ElementType a, b;
  AccumulatorType d;
  int m, n, k;
};

TEST(Tcgen05Descriptor, DecodesTheWorkedValues) {
  using E = ElementType;
  const MmaQualifiers f16{Tcgen05Kind::kF16}, f8{Tcgen05Kind::kF8f6f4}, mx8{Tcgen05Kind::kMxf8f6f4},
      mx4{Tcgen05Kind::kMxf4};
  MmaQualifiers pair = f16, sparse = f16, ws = f16, nv4{Tcgen05Kind::kMxf4nvf4}, nv4_pair;
  pair.cta_group = 2;
  sparse.sparsity = SparseForm::kSparse;
  ws.weight_mode = WeightMode::kWeightStationary;
  nv4.scale_vector = 4;
  nv4_pair = nv4;
  nv4_pair.cta_group = 2;
  const auto f32 = AccumulatorType::kF32;
  const Worked rows[] = {
      {0x08400490, f16, E::kBf16, E::kBf16, f32, 128, 256, 16},
      {0x08200010, f16, E::kF16, E::kF16, f32, 128, 128, 16},
      {0x04100000, f16, E::kF16, E::kF16, AccumulatorType::kF16, 64, 64, 16},
      {0x10400490, pair, E::kBf16, E::kBf16, f32, 256, 256, 16},
      {0x08110490, f16, E::kBf16, E::kBf16, f32, 128, 64, 16},
      {0x08100910, {Tcgen05Kind::kTf32}, E::kTf32, E::kTf32, f32, 128, 64, 8},
      {0x08200010, f8, E::kE4m3, E::kE4m3, f32, 128, 128, 32},
      {0x08200690, f8, E::kE2m1, E::kE5m2, f32, 128, 128, 32},
      {0x082004A0, {Tcgen05Kind::kI8}, E::kS8, E::kS8, AccumulatorType::kS32, 128, 128, 32},
      {0x08200495, sparse, E::kBf16, E::kBf16, f32, 128, 128, 32},
      {0x82100490, ws, E::kBf16, E::kBf16, f32, 32, 64, 16},
      {0x08A00000, mx8, E::kE4m3, E::kE4m3, f32, 128, 128, 32},
      {0x68A00030, mx8, E::kE4m3, E::kE4m3, f32, 128, 128, 32},
      {0x08A00480, mx4, E::kE2m1, E::kE2m1, f32, 128, 128, 64},
      {0x08200480, nv4, E::kE2m1, E::kE2m1, f32, 128, 128, 64},
      {0x10400480, nv4_pair, E::kE2m1, E::kE2m1, f32, 256, 256, 64},
  };
  for (const Worked& w : rows) {
    const auto d = DecodeInstructionDescriptor(w.qualifiers, w.bits);
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ(d->a, w.a) << std::hex << w.bits;
    EXPECT_EQ(d->b, w.b) << std::hex << w.bits;
    EXPECT_EQ(d->d, w.d) << std::hex << w.bits;
    EXPECT_EQ(d->m, w.m) << std::hex << w.bits;
    EXPECT_EQ(d->n, w.n) << std::hex << w.bits;
    EXPECT_EQ(d->k, w.k) << std::hex << w.bits;
  }
  EXPECT_TRUE(DecodeInstructionDescriptor(f16, 0x08110490)->transpose_b);
  EXPECT_EQ(DecodeInstructionDescriptor(sparse, 0x08200495)->sparsity_selector, 1);
  EXPECT_EQ(DecodeInstructionDescriptor(ws, 0x82100490)->max_column_shift, 16);
  EXPECT_EQ(DecodeInstructionDescriptor(mx8, 0x68A00030)->scale_a_id, 3);
  EXPECT_EQ(DecodeInstructionDescriptor(mx8, 0x68A00030)->scale_b_id, 3);
  EXPECT_EQ(DecodeInstructionDescriptor(nv4, 0x08200480)->scale, ScaleType::kUe4m3);
}

// Bit 31 of the 4-bit kinds: half as many scale factors again.
TEST(Tcgen05Descriptor, RowsOf96ElementsAreOfDevicesThatHaveThem) {
  MmaQualifiers mx4{Tcgen05Kind::kMxf4}, nv4{Tcgen05Kind::kMxf4nvf4};
  nv4.scale_vector = 4;
  EXPECT_NE(DecodeInstructionDescriptor(nv4, 0x88200480).error().message.find("sm_103a only"), std::string::npos);
  mx4.long_rows = nv4.long_rows = true;
  const auto nv = DecodeInstructionDescriptor(nv4, 0x88200480 | 2u << 4 | 2u << 29);
  ASSERT_TRUE(nv) << nv.error().message;
  EXPECT_EQ(nv->k, 96);
  EXPECT_EQ(nv->scale_factors, 6);
  EXPECT_EQ(nv->scale_a_id, 2);
  EXPECT_FALSE(DecodeInstructionDescriptor(nv4, 0x88200480 | 1u << 4));
  const auto mx = DecodeInstructionDescriptor(mx4, 0x88A00480 | 3u << 4 | 1u << 29);
  ASSERT_TRUE(mx) << mx.error().message;
  EXPECT_EQ(mx->scale_factors, 3);
  EXPECT_EQ(mx->scale_b_id, 3);
  nv4.sparsity = SparseForm::kSparse;
  EXPECT_NE(DecodeInstructionDescriptor(nv4, 0x88200484).error().message.find("dense A only"), std::string::npos);
}

TEST(Tcgen05Descriptor, RefusesWhatIsWrongByName) {
  const auto message = [](MmaQualifiers q, uint32_t bits) {
    const auto d = DecodeInstructionDescriptor(q, bits);
    return d ? std::string("accepted") : d.error().message;
  };
  const MmaQualifiers f16{Tcgen05Kind::kF16};
  MmaQualifiers pair = f16, sparse = f16;
  pair.cta_group = 2;
  sparse.sparsity = SparseForm::kSparse;
  EXPECT_NE(message(f16, 0x10400490).find("M 256 must be one of 64, 128"), std::string::npos);
  EXPECT_NE(message(pair, 0x04400490).find("M 64 must be one of 128, 256"), std::string::npos);
  EXPECT_NE(message(f16, 0x08000490).find("N 0"), std::string::npos);
  EXPECT_NE(message(f16, 0x08420490).find("N 264"), std::string::npos);
  EXPECT_NE(message(pair, 0x10020490).find("multiple of 16"), std::string::npos);
  EXPECT_NE(message(f16, 0x08400410).find("both"), std::string::npos);   // f16 x bf16
  EXPECT_NE(message(f16, 0x08400480).find("D f16"), std::string::npos);  // bf16 into f16
  EXPECT_NE(message(f16, 0x08400494).find("without .sp"), std::string::npos);
  EXPECT_NE(message(sparse, 0x08200490).find("bit 2 is clear"), std::string::npos);
  EXPECT_NE(message(f16, 0x88400490).find("reserved"), std::string::npos);  // max shift without .ws
  EXPECT_NE(message({Tcgen05Kind::kTf32}, 0x08100010).find("A type code 0"), std::string::npos);
  EXPECT_NE(message({Tcgen05Kind::kI8}, 0x080a04a0).find("N 40"), std::string::npos);
  EXPECT_NE(message({Tcgen05Kind::kF8f6f4}, 0x08208010 | 5 << 7).find("cannot be transposed"), std::string::npos);
  EXPECT_NE(message({Tcgen05Kind::kMxf4}, 0x08200480).find("ue4m3"), std::string::npos);
  EXPECT_NE(message({Tcgen05Kind::kMxf4nvf4}, 0x08200480).find("scale vector size"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::emulator
