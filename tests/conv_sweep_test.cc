// The sweeps of convolutions are what they claim to be: many, different, small, and of every kind.
#include <gtest/gtest.h>

#include <set>

#include "tests/sweep.h"

namespace laneshift {
namespace {

std::set<std::string> Distinct(const std::string& file) {
  std::set<std::string> problems;
  for (const sweep::Case& c : sweep::Cases(file)) problems.insert(PrintProblem(c.problem));
  return problems;
}

ConvProblem ConvOf(const std::string& text) { return std::get<ConvProblem>(*ParseProblem(text)); }

TEST(ConvSweep, HoldsManySmallGeometries) {
  const std::set<std::string> problems = Distinct("conv.txt");
  EXPECT_GE(problems.size(), 400u);
  double flops = 0;
  for (const std::string& text : problems) {
    flops += ProblemFlops(*ParseProblem(text));
    EXPECT_LE(ProblemFlops(*ParseProblem(text)), 7e6) << text;
  }
  EXPECT_LE(flops / static_cast<double>(problems.size()), 1e6);
}

TEST(ConvSweep, HasEveryFilterWidthAndEveryKind) {
  std::set<int64_t> widths;
  int one = 0, three = 0, groups = 0, dilated = 0, strided = 0, asymmetric = 0, three_channels = 0, ragged = 0,
      beyond = 0;
  for (const std::string& text : Distinct("conv.txt")) {
    const ConvProblem p = ConvOf(text);
    widths.insert(p.filter[kWidth]);
    three += p.input[kDepth] > 1;
    one += p.input[kDepth] == 1 && p.input[kHeight] == 1 && p.filter[kHeight] == 1;
    groups += p.groups > 1;
    dilated += p.dilation[kWidth] > 1;
    strided += p.stride[kWidth] > 1;
    asymmetric += p.pad_before != p.pad_after;
    three_channels += p.c == 3;
    ragged += p.c % 8 != 0;
    beyond += p.filter[kWidth] > p.input[kWidth];
  }
  for (int64_t s = 1; s <= 11; ++s) EXPECT_TRUE(widths.contains(s)) << s;
  for (const int count : {one, three, groups, dilated, strided, asymmetric, three_channels, ragged, beyond}) {
    EXPECT_GE(count, 10);
  }
}

TEST(ConvLayers, AreWholeOrCutToSize) {
  const std::set<std::string> problems = Distinct("conv_layers.txt");
  EXPECT_GE(problems.size(), 60u);
  for (const std::string& text : problems) EXPECT_LE(ProblemFlops(*ParseProblem(text)), 1e9) << text;
  // The first layer of ResNet-50 at its full size.
  EXPECT_TRUE(problems.contains("conv n=1 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2 x=bf16 w=bf16 y=bf16"));
}

}  // namespace
}  // namespace laneshift
