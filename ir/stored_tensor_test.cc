#include "ir/stored_tensor.h"

#include <gtest/gtest.h>

namespace laneshift::ir {
namespace {

Problem ParseOrFail(std::string_view text) {
  auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << text << ": " << (problem ? "" : problem.error().message);
  return problem ? *problem : Problem{};
}

TEST(StoredTensor, OfAGemmIsMatrices) {
  const Problem gemm = ParseOrFail("gemm m=3 n=5 k=7 batch=2 a_major=m lda=8 d=f32 ldd=6 bias=m");
  const StoredTensor a = Stored(gemm, OperandRole::kA);
  EXPECT_EQ(a.rank, 3);
  EXPECT_EQ(a.extents, (StoredTensor::Dimensions{2, 1, 1, 7, 3}));
  EXPECT_EQ(a.RowStart(8), 7 * 8 + 1 * 8);
  const StoredTensor d = Stored(gemm, OperandRole::kD);
  EXPECT_EQ(d.Elements(), 30);
  EXPECT_EQ(d.Bytes(), 4u * (1 * 3 * 6 + 2 * 6 + 5));
  EXPECT_TRUE(d.Padded());
  EXPECT_EQ(d.PrintIndex(17), "(1, 0, 2)");
  EXPECT_EQ(Stored(gemm, OperandRole::kBias).Elements(), 3);
  EXPECT_EQ(d.Shape(), (std::vector<int64_t>{2, 3, 5}));
  EXPECT_EQ(Stored(gemm, OperandRole::kBias).Shape(), (std::vector<int64_t>{3}));
  const StoredTensor one = Stored(ParseOrFail("gemm m=3 n=5 k=7"), OperandRole::kD);
  EXPECT_EQ(one.rank, 2);
  EXPECT_EQ(one.Shape(), (std::vector<int64_t>{3, 5}));
}

TEST(StoredTensor, ElementsOfFourBitsAreTwoInAByte) {
  const Problem gemm = ParseOrFail("gemm m=200 n=5 k=34 lda=64 batch=2 a=e2m1 scale=nv");
  const StoredTensor a = Stored(gemm, OperandRole::kA);
  EXPECT_EQ(a.Bytes(), (200u + 199u) * 32 + 17);
  EXPECT_TRUE(a.Padded());
  EXPECT_FALSE(Stored(gemm, OperandRole::kB).Padded());
  EXPECT_EQ(Stored(gemm, OperandRole::kB).Bytes(), 2u * 5 * 17);
  // Two blocks of 128 rows for each matrix, of one block of 4 x 16 elements along k.
  const StoredTensor scales = Stored(gemm, OperandRole::kScaleA);
  EXPECT_EQ(scales.type, DataType::kUe4m3);
  EXPECT_EQ(scales.Bytes(), 2u * 2 * 512);
  EXPECT_EQ(Stored(ParseOrFail("gemm m=200 n=5 k=130 a=e2m1 scale=mx"), OperandRole::kScaleA).Bytes(), 2u * 2 * 512);
  EXPECT_EQ(Stored(gemm, OperandRole::kTensorScaleA).Bytes(), 4u);
  EXPECT_TRUE(Uses(gemm, OperandRole::kTensorScaleB));
  EXPECT_FALSE(Uses(ParseOrFail("gemm m=2 n=2 k=2 a=e2m1 scale=mx"), OperandRole::kTensorScaleA));
}

TEST(StoredTensor, FactorsOfDAreThoseOfTheNextA) {
  const Problem gemm = ParseOrFail("gemm m=200 n=320 k=34 batch=2 d=e2m1 d_scale=nv epilogue=swiglu");
  const Problem next = ParseOrFail("gemm m=200 n=5 k=160 batch=2 a=e2m1 scale=nv");
  EXPECT_EQ(Stored(gemm, OperandRole::kD).Bytes(), Stored(next, OperandRole::kA).Bytes());
  EXPECT_EQ(Stored(gemm, OperandRole::kBlockScaleD).Shape(), Stored(next, OperandRole::kScaleA).Shape());
  EXPECT_EQ(Stored(gemm, OperandRole::kBlockScaleD).type, DataType::kUe4m3);
  EXPECT_TRUE(Uses(gemm, OperandRole::kScaleD)) << "the f32 factor of D";
  EXPECT_EQ(NameOf(gemm, OperandRole::kBlockScaleD), "block_scale_d");
  const Problem mx = ParseOrFail("gemm m=2 n=2 k=2 a=e4m3 d=e4m3 scale=tensor d_scale=mx");
  EXPECT_TRUE(Uses(mx, OperandRole::kBlockScaleD));
  EXPECT_FALSE(Uses(mx, OperandRole::kScaleD));
  EXPECT_FALSE(Uses(ParseOrFail("gemm m=2 n=2 k=2 a=e4m3 d=e4m3 scale=tensor"), OperandRole::kBlockScaleD));
}

TEST(StoredTensor, OfAConvolutionHasItsSpatialDimensions) {
  const Problem two =
      ParseOrFail("conv n=2 h=5 w=6 c=8 k=4 r=3 s=3 pad=1 stride=1,2 groups=2 x_pixel=9 x_row=60 bias=k");
  const StoredTensor x = Stored(two, OperandRole::kA);
  EXPECT_EQ(x.rank, 4);
  EXPECT_EQ(x.extents, (StoredTensor::Dimensions{2, 1, 5, 6, 8}));
  EXPECT_EQ(x.RowStart((1 * 5 + 3) * 6 + 2), 300 + 3 * 60 + 2 * 9);
  EXPECT_EQ(Stored(two, OperandRole::kB).extents, (StoredTensor::Dimensions{4, 1, 3, 3, 4}));
  EXPECT_EQ(Stored(two, OperandRole::kD).extents, (StoredTensor::Dimensions{2, 1, 5, 3, 4}));
  EXPECT_FALSE(Stored(two, OperandRole::kD).Padded());
  EXPECT_EQ(Stored(two, OperandRole::kBias).Elements(), 4);

  const Problem one = ParseOrFail("conv n=2 w=6 c=8 k=4 s=3");
  EXPECT_EQ(Stored(one, OperandRole::kA).rank, 3);
  EXPECT_EQ(Stored(one, OperandRole::kA).extents, (StoredTensor::Dimensions{2, 1, 1, 6, 8}));
  EXPECT_EQ(Stored(one, OperandRole::kA).RowStart(7), 48 + 8);
  EXPECT_EQ(Stored(one, OperandRole::kA).PrintIndex(48 + 8 + 3), "(1, 1, 3)");
  EXPECT_EQ(Stored(one, OperandRole::kA).Shape(), (std::vector<int64_t>{2, 6, 8}));
  const Problem three = ParseOrFail("conv n=2 d=3 h=5 w=6 c=8 k=4 t=2 r=1 s=1");
  EXPECT_EQ(Stored(three, OperandRole::kD).rank, 5);
  EXPECT_EQ(Stored(three, OperandRole::kD).PrintIndex(4 * (6 * (5 * (2 * 1 + 1) + 4) + 5) + 3), "(1, 1, 4, 5, 3)");
}

TEST(StoredTensor, IsUsedAsTheProblemSays) {
  const Problem plain = ParseOrFail("conv w=6 c=8 k=4 s=3"), full = ParseOrFail("conv w=6 c=8 k=4 s=3 beta=1 bias=k");
  for (const OperandRole role : {OperandRole::kA, OperandRole::kB, OperandRole::kD}) EXPECT_TRUE(Uses(plain, role));
  for (const OperandRole role : {OperandRole::kC, OperandRole::kBias}) {
    EXPECT_FALSE(Uses(plain, role));
    EXPECT_TRUE(Uses(full, role));
  }
  EXPECT_EQ(NameOf(plain, OperandRole::kC), "z");
  EXPECT_EQ(NameOf(ParseOrFail("gemm m=1 n=1 k=1"), OperandRole::kC), "c");
}

}  // namespace
}  // namespace laneshift::ir
