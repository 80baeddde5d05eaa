#include <gtest/gtest.h>

#include "ir/stored_tensor.h"
#include "laneshift/problem.h"

namespace laneshift {
namespace {

ConvProblem ParseConv(std::string_view text) {
  auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << text << ": " << (problem ? "" : problem.error().message);
  return problem ? std::get<ConvProblem>(*problem) : ConvProblem{};
}

TEST(ConvProblem, TheIssuesFormIsRead) {
  const ConvProblem p =
      ParseConv("conv n=32 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2 dilation=1 groups=1 x=bf16 w=bf16 y=bf16");
  EXPECT_EQ(p.n, 32);
  EXPECT_EQ(p.input, (Spatial{1, 224, 224}));
  EXPECT_EQ(p.filter, (Spatial{1, 7, 7}));
  EXPECT_EQ(p.pad_before, (Spatial{0, 3, 3}));
  EXPECT_EQ(p.pad_after, (Spatial{0, 3, 3}));
  EXPECT_EQ(p.stride, (Spatial{1, 2, 2}));
  EXPECT_EQ(p.Output(), (Spatial{1, 112, 112}));
  EXPECT_EQ(ProblemKind(Problem(p)), "conv");
}

TEST(ConvProblem, WNamesTheWidthAndTheTypeOfTheFilters) {
  const ConvProblem p = ParseConv("conv w=f16 w=9 c=8 k=8 s=3 x=f16");
  EXPECT_EQ(p.input[kWidth], 9);
  EXPECT_EQ(p.w, DataType::kF16);
  // Left out, the type is that of x.
  EXPECT_EQ(ParseConv("conv w=9 c=8 k=8 s=3 x=f16").w, DataType::kF16);
  EXPECT_EQ(ParseConv("conv w=9 c=8 k=8 s=3 x=f16").y, DataType::kF16);
  EXPECT_EQ(ParseConv("conv w=9 c=8 k=8 s=3 x=f16 y=f32").z, DataType::kF32);
}

TEST(ConvProblem, OneValueStandsForAllDimensionsOfTheProblem) {
  const ConvProblem one = ParseConv("conv w=9 c=8 k=8 s=3 pad=1 stride=2 dilation=2");
  EXPECT_EQ(one.pad_before, (Spatial{0, 0, 1}));
  EXPECT_EQ(one.stride, (Spatial{1, 1, 2}));
  EXPECT_EQ(one.Output(), (Spatial{1, 1, 4}));
  const ConvProblem two = ParseConv("conv h=1 w=9 c=8 k=8 s=3 pad=1");
  EXPECT_EQ(two.pad_before, (Spatial{0, 1, 1}));
  EXPECT_EQ(two.Output(), (Spatial{1, 3, 9}));
  const ConvProblem three = ParseConv("conv d=4 h=5 w=9 c=8 k=8 t=3 r=3 s=3 pad=1 dilation=2,1,1");
  EXPECT_EQ(three.pad_before, (Spatial{1, 1, 1}));
  EXPECT_EQ(three.dilation, (Spatial{2, 1, 1}));
  EXPECT_EQ(three.Output(), (Spatial{2, 5, 9}));
}

TEST(ConvProblem, PadsMayDifferPerDimensionAndSide) {
  const ConvProblem p = ParseConv("conv h=8 w=8 c=8 k=8 r=3 s=5 pad=1:2,0:3 stride=2,1");
  EXPECT_EQ(p.pad_before, (Spatial{0, 1, 0}));
  EXPECT_EQ(p.pad_after, (Spatial{0, 2, 3}));
  EXPECT_EQ(p.stride, (Spatial{1, 2, 1}));
  EXPECT_EQ(p.Output(), (Spatial{1, 5, 7}));
}

TEST(ConvProblem, AFilterMayBeLargerThanTheImage) {
  EXPECT_EQ(ParseConv("conv h=2 w=3 c=8 k=8 r=7 s=7 pad=3").Output(), (Spatial{1, 2, 3}));
}

TEST(ConvProblem, PitchesArePackedOverThoseInside) {
  const ConvProblem p = ParseConv("conv n=2 h=4 w=5 c=12 k=6 r=3 s=3 pad=1 groups=3 x_pixel=16 y_row=40 w_tap=8");
  EXPECT_EQ(p.x_pitch, (ConvPitches{16, 80, 320, 320}));
  EXPECT_EQ(p.w_pitch, (ConvPitches{8, 24, 72, 72}));
  EXPECT_EQ(p.y_pitch, (ConvPitches{6, 40, 160, 160}));
  EXPECT_EQ(p.z_pitch, (ConvPitches{6, 30, 120, 120}));
}

TEST(ConvProblem, PrintsOnlyWhatIsNotDefault) {
  EXPECT_EQ(PrintProblem(*ParseProblem("conv s=3 k=64 c=32 w=56")), "conv n=1 w=56 c=32 k=64 s=3 x=bf16 w=bf16 y=bf16");
  EXPECT_EQ(PrintProblem(*ParseProblem("conv d=1 h=7 w=7 c=8 k=8 r=3 s=3 pad=1,1,1:1 t=1 stride=1,2,2")),
            "conv n=1 d=1 h=7 w=7 c=8 k=8 t=1 r=3 s=3 pad=1 stride=1,2,2 x=bf16 w=bf16 y=bf16");
  const std::string full =
      "conv n=2 d=6 h=9 w=11 c=12 k=6 t=2 r=3 s=4 pad=1,0:2,3:1 stride=1,2,3 dilation=2,1,1 groups=3 x=f16 w=f16 z=f16 "
      "y=f32 x_pixel=16 x_row=180 x_plane=2000 x_image=13000 w_tap=8 w_row=40 w_plane=130 w_filter=300 z_pixel=7 "
      "z_row=40 z_plane=300 z_image=3000 y_pixel=8 y_row=50 y_plane=400 y_image=4000 alpha=0.5 beta=-1.25 bias=k "
      "align_x=2 align_w=4 align_z=2 align_y=4";
  EXPECT_EQ(PrintProblem(*ParseProblem(full)), full);
}

TEST(ConvProblem, EveryPrintedFormParsesBack) {
  for (const char* text :
       {"conv w=1 c=1 k=1 s=1", "conv n=3 h=1 w=9 c=3 k=7 r=1 s=3 pad=1", "conv h=1 w=9 c=3 k=7 r=1 s=3 pad=0,1",
        "conv d=3 h=4 w=5 c=8 k=8 t=2 r=2 s=2 stride=2 y=f32 beta=1", "conv w=64 c=8 k=8 s=11 pad=5:4 dilation=3"}) {
    const Problem problem = *ParseProblem(text);
    EXPECT_EQ(*ParseProblem(PrintProblem(problem)), problem) << text << " -> " << PrintProblem(problem);
  }
}

TEST(ConvProblem, IsCompletedFromAStruct) {
  const auto complete = CompleteProblem(ConvProblem{.n = 2,
                                                    .c = 8,
                                                    .k = 16,
                                                    .input = {1, 5, 6},
                                                    .filter = {1, 3, 3},
                                                    .pad_before = {0, 1, 1},
                                                    .pad_after = {0, 1, 1}});
  ASSERT_TRUE(complete.has_value()) << complete.error().message;
  EXPECT_EQ(*complete, *ParseProblem("conv n=2 h=5 w=6 c=8 k=16 r=3 s=3 pad=1"));
}

struct ConvLine {
  const char* text;
  const char* message;
};

class BadConvProblem : public testing::TestWithParam<ConvLine> {};

TEST_P(BadConvProblem, IsRefusedByName) {
  const auto problem = ParseProblem(GetParam().text);
  ASSERT_FALSE(problem.has_value()) << PrintProblem(*problem);
  EXPECT_EQ(problem.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(problem.error().message.find(GetParam().message), std::string::npos) << problem.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadConvProblem,
    testing::Values(
        ConvLine{"conv h=5 c=8 k=8 s=3", "key 'w' is missing"},
        ConvLine{"conv w=bf16 c=8 k=8 s=3", "needs w= (a number)"},
        ConvLine{"conv w=5 w=6 c=8 k=8 s=3", "key 'w' is given twice"},
        ConvLine{"conv w=int8 c=8 k=8 s=3", "w=int8 is not a whole number"},
        ConvLine{"conv w=5 c=8 k=8 s=3 q=7", "unknown key 'q'"},
        ConvLine{"conv w=5 c=8 k=0 s=3", "k=0 is out of range"},
        ConvLine{"conv w=5 c=8 k=8 s=7 pad=0:1", "the output is empty: the filter reaches over 7 in width"},
        ConvLine{"conv h=4 w=5 c=8 k=8 r=3 s=3 dilation=2,1", "reaches over 5 in height, the padded image has 4"},
        ConvLine{"conv w=5 c=8 k=8 s=3 pad=-1", "pad=-1 is out of range"},
        ConvLine{"conv w=5 c=8 k=8 s=3 pad=1:", "pad= is not a whole number"},
        ConvLine{"conv w=5 c=8 k=8 s=3 stride=0", "stride=0 is out of range"},
        ConvLine{"conv w=5 c=8 k=8 s=3 stride=1,2", "has 2 values, but the problem has 1 spatial dimension;"},
        ConvLine{"conv h=5 w=5 c=8 k=8 r=3 s=3 pad=1,1,1", "has 3 values, but the problem has 2"},
        ConvLine{"conv w=5 c=8 k=8 s=3 groups=3", "groups=3 does not divide c=8"},
        ConvLine{"conv w=5 c=9 k=8 s=3 groups=3", "groups=3 does not divide k=8"},
        ConvLine{"conv w=5 c=8 k=8 s=3 x=f32", "w=f32 is not supported"},
        ConvLine{"conv w=5 c=8 k=8 s=3 x=f16 w=bf16", "both f16, both bf16"},
        ConvLine{"conv w=5 c=8 k=8 s=3 bias=n", "use none or k"},
        ConvLine{"conv w=5 c=8 k=8 s=3 x_pixel=7", "x_pixel=7 is below the 8 elements"},
        ConvLine{"conv h=2 w=5 c=8 k=8 s=3 y_row=23", "y_row=23 is below the 24 elements"},
        ConvLine{"conv n=2 w=5 c=8 k=8 s=3 x_image=39", "x_image=39 is below the 40"},
        ConvLine{"conv w=5 c=8 k=8 s=3 beta=1 z_pixel=4", "z_pixel=4 is below"},
        ConvLine{"conv w=5 c=8 k=8 s=3 w_filter=20", "w_filter=20 is below the 24"},
        ConvLine{"conv w=5 c=8 k=8 s=3 align_y=3", "align_y=3 is not an alignment"},
        ConvLine{"conv n=65536 h=256 w=256 c=1 k=1 s=1", "output pixels"},
        ConvLine{"conv h=65536 w=65536 c=1 k=1 r=65536 s=65536", "products per output element"},
        ConvLine{"conv w=2147483647 c=2147483647 k=1 s=1", "more than 2^46 elements"},
        ConvLine{"conv h=65536 w=32767 c=1 k=32768 r=1 s=1", "_plane=70366596694016 is out of range; neighbours"}));

// What is filled in is what may be said: a problem that was completed can be completed again.
TEST(ConvProblem, CompletesTwice) {
  const Problem p = *ParseProblem("conv h=65536 w=32767 c=1 k=256 r=1 s=1");
  EXPECT_EQ(*CompleteProblem(p), p);
}

TEST(ConvProblem, FlopsAndBytes) {
  const Problem p =
      *ParseProblem("conv n=2 h=5 w=6 c=8 k=4 r=3 s=3 pad=1 stride=2,1 groups=2 x=f16 y=f32 beta=1 bias=k");
  EXPECT_EQ(ProblemFlops(p), 2.0 * (2 * 3 * 6 * 4) * (3 * 3 * 4));
  EXPECT_EQ(ProblemBytes(p), 2.0 * 5 * 6 * 8 * 2 + 4 * 9 * 4 * 2 + 2 * (2 * 3 * 6 * 4 * 4) + 4 * 4);
}

TEST(ConvGradients, AreKindsOfTheirOwn) {
  const ConvProblem dgrad = ParseConv("conv_dgrad n=2 h=9 w=11 c=16 k=24 r=3 s=3 pad=1 stride=2 y=f16 x=f32");
  EXPECT_EQ(dgrad.pass, ConvPass::kDgrad);
  EXPECT_EQ(ProblemKind(Problem(dgrad)), "conv_dgrad");
  EXPECT_EQ(dgrad.w, DataType::kF16);
  EXPECT_EQ(dgrad.z, DataType::kF32);
  EXPECT_EQ(PrintProblem(dgrad), "conv_dgrad n=2 h=9 w=11 c=16 k=24 r=3 s=3 pad=1 stride=2 x=f32 w=f16 y=f16");
  EXPECT_EQ(ParseConv(PrintProblem(dgrad)), dgrad);
  EXPECT_EQ(ir::Stored(dgrad, ir::OperandRole::kA).extents, (ir::StoredTensor::Dimensions{2, 1, 5, 6, 24}));
  EXPECT_EQ(ir::Stored(dgrad, ir::OperandRole::kB).extents, (ir::StoredTensor::Dimensions{24, 1, 3, 3, 16}));
  EXPECT_EQ(ir::Stored(dgrad, ir::OperandRole::kC).extents, (ir::StoredTensor::Dimensions{2, 1, 9, 11, 16}));
  EXPECT_EQ(ir::Stored(dgrad, ir::OperandRole::kD).extents, (ir::StoredTensor::Dimensions{2, 1, 9, 11, 16}));
  EXPECT_EQ(ir::NameOf(Problem(dgrad), ir::OperandRole::kD), "x");

  const ConvProblem wgrad = ParseConv("conv_wgrad w=11 c=16 k=24 s=3 x=f16 w=f32 groups=2 beta=1");
  EXPECT_EQ(ProblemKind(Problem(wgrad)), "conv_wgrad");
  EXPECT_EQ(wgrad.y, DataType::kF16);
  EXPECT_EQ(wgrad.z, DataType::kF32);
  EXPECT_EQ(ir::Stored(wgrad, ir::OperandRole::kA).extents, (ir::StoredTensor::Dimensions{1, 1, 1, 9, 24}));
  EXPECT_EQ(ir::Stored(wgrad, ir::OperandRole::kB).extents, (ir::StoredTensor::Dimensions{1, 1, 1, 11, 16}));
  EXPECT_EQ(ir::Stored(wgrad, ir::OperandRole::kC).extents, (ir::StoredTensor::Dimensions{24, 1, 1, 3, 8}));
  EXPECT_EQ(ir::Stored(wgrad, ir::OperandRole::kD).extents, (ir::StoredTensor::Dimensions{24, 1, 1, 3, 8}));
  EXPECT_EQ(ir::NameOf(Problem(wgrad), ir::OperandRole::kB), "x");
  EXPECT_EQ(ParseConv(PrintProblem(wgrad)), wgrad);
  // The same products as the forward convolution.
  for (const char* pass : {"conv_dgrad", "conv_wgrad"}) {
    const std::string text = std::string(pass) + " n=2 h=9 w=11 c=16 k=24 r=3 s=3 stride=2";
    EXPECT_EQ(ProblemFlops(*ParseProblem(text)), ProblemFlops(*ParseProblem("conv" + text.substr(10))));
  }
}

TEST(ConvGradients, RefuseWhatOnlyTheForwardPassHas) {
  const std::pair<const char*, const char*> cases[] = {
      {"conv_dgrad w=9 c=8 k=8 s=3 bias=k", "for a vector along c use epilogue=bias_c"},
      {"conv_dgrad w=9 c=8 k=8 s=3 epilogue=bias_k", "unknown step 'bias_k'"},
      {"conv_dgrad w=9 c=8 k=8 s=3 epilogue=swiglu", "a gated linear unit joins columns of y"},
      {"conv_wgrad w=9 c=8 k=8 s=3 bias=k", "bias=k is added to y"},
      {"conv_wgrad w=9 c=8 k=8 s=3 epilogue=relu", "a conv_wgrad has none"},
      {"conv_wgrad w=9 c=8 k=8 s=3 numerics=batch_invariant", "use numerics=deterministic"},
      {"conv_dgrad w=9 c=8 k=8 s=3 y=f16 w=bf16", "y and w are both f16"},
      {"conv_dgrad w=9 c=8 k=8", "a conv_dgrad needs w= (a number)"},
      {"dgrad w=9 c=8 k=8 s=1", "write for example: conv_dgrad n=1"},
      {"conv_dgrad w=9 c=8 k=8 s=1 kernel_size=3", "rows and columns are r= and s="},
  };
  for (const auto& [text, message] : cases) {
    const auto problem = ParseProblem(text);
    ASSERT_FALSE(problem.has_value()) << text;
    EXPECT_NE(problem.error().message.find(message), std::string::npos) << problem.error().message;
  }
}

}  // namespace
}  // namespace laneshift
