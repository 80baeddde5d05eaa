#include "compiler/contraction/operand_source.h"

#include <gtest/gtest.h>

namespace laneshift::compiler {
namespace {

using ir::Axis;
using enum ir::Operand;

OperandSource Source(const std::string& text, ir::Operand operand) {
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << text << ": " << problem.error().message;
  return SourceOf(*problem, operand);
}

TEST(OperandSource, OfAGemmIsAMatrix) {
  const OperandSource a = Source("gemm m=3 n=5 k=7 batch=2 a_major=m lda=8 stride_a=60 align_a=4", kA);
  EXPECT_EQ(a.kind, SourceKind::kMatrix);
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.outer_axis, Axis::kK);
  EXPECT_EQ(a.inner_axis, Axis::kM);
  EXPECT_EQ(a.MatrixRows(), 7);
  EXPECT_EQ(a.run, 3);
  EXPECT_EQ(a.Pitch(), 8);
  EXPECT_EQ(a.Stride(), 60);
  EXPECT_EQ(a.align, 4);
  const OperandSource d = Source("gemm m=3 n=6 k=7 epilogue=swiglu", kD);
  EXPECT_EQ(d.inner_axis, Axis::kN);
  EXPECT_EQ(d.run, 3);
}

TEST(OperandSource, OfAConvolutionIsPixelsAndFilters) {
  const std::string conv = "conv n=2 h=5 w=6 c=8 k=4 r=3 s=3 groups=2 x_pixel=9 x_row=60 w_tap=5";
  const OperandSource x = Source(conv, kA), w = Source(conv, kB), y = Source(conv, kD);
  EXPECT_EQ(x.kind, SourceKind::kPixels);
  EXPECT_EQ(x.run, 4);
  EXPECT_EQ(x.Pitch(), 9);
  EXPECT_EQ(x.Stride(), 300);
  EXPECT_EQ(w.kind, SourceKind::kFilter);
  EXPECT_EQ(w.outer_axis, Axis::kN);
  EXPECT_EQ(w.run, 4);
  EXPECT_EQ(w.Pitch(), 45);  // from filter to filter
  EXPECT_EQ(w.Stride(), 5);  // from tap to tap
  EXPECT_EQ(y.kind, SourceKind::kPixels);
  EXPECT_EQ(y.run, 2);
}

TEST(OperandSource, HasTheDistancesThatAreUsed) {
  const auto used = [](const std::string& text, ir::Operand operand) {
    std::string names;
    for (const SourceDistance& distance : DistancesOf(Source(text, operand))) {
      if (distance.used) names += std::string(names.empty() ? "" : ", ") + std::string(distance.name);
    }
    return names;
  };
  EXPECT_EQ(used("gemm m=1 n=5 k=7", kA), "pitch");
  EXPECT_EQ(used("gemm m=1 n=5 k=7 batch=2", kD), "pitch, batch stride");
  EXPECT_EQ(used("conv n=2 h=5 w=1 c=8 k=4 r=1 s=1", kA), "pixel pitch, row pitch, image pitch");
  EXPECT_EQ(used("conv n=1 w=1 c=8 k=4 s=1", kA), "");
  EXPECT_EQ(used("conv n=1 w=9 c=8 k=4 s=3", kB), "tap pitch, filter pitch");
}

TEST(OperandSource, AccessesAreAsWideAsEveryDistanceAllows) {
  const auto width = [](const std::string& text) { return AccessWidth(Source(text, kD), 16); };
  EXPECT_EQ(width("conv n=1 h=9 w=9 c=16 k=16 r=3 s=3"), 8);
  EXPECT_EQ(width("conv n=1 h=9 w=9 c=16 k=12 r=3 s=3"), 4);
  EXPECT_EQ(width("conv n=1 h=9 w=9 c=16 k=16 r=3 s=3 groups=8"), 2);
  EXPECT_EQ(width("conv n=1 h=9 w=9 c=16 k=16 r=3 s=3 y_row=145"), 1);
  EXPECT_EQ(width("gemm m=9 n=12 k=16"), 4);
  EXPECT_EQ(width("gemm m=9 n=16 k=16 ldd=18"), 2);
  EXPECT_EQ(width("gemm m=9 n=16 k=16 align_d=8"), 4);
  EXPECT_EQ(width("gemm m=9 n=16 k=16 batch=2 stride_d=145"), 1);
  EXPECT_EQ(AccessWidth(Source("gemm m=9 n=16 k=16", kD), 2), 2);
  EXPECT_EQ(GatherWidth(Source("conv n=1 h=9 w=9 c=16 k=16 r=3 s=3", kA)), 8);
  EXPECT_EQ(GatherWidth(Source("conv n=1 h=9 w=9 c=12 k=16 r=3 s=3", kA)), 1);
}

TEST(OperandSource, TapsMayHaveGaps) {
  const auto even = [](const std::string& text, bool dense) {
    return TapsAreEven(Source("conv n=1 h=9 w=9 c=16 k=16 r=3 s=3 " + text, kB), dense);
  };
  EXPECT_TRUE(even("", true));
  EXPECT_TRUE(even("w_tap=24", false));
  EXPECT_FALSE(even("w_tap=24", true));
  EXPECT_FALSE(even("w_row=50", false));
}

}  // namespace
}  // namespace laneshift::compiler
