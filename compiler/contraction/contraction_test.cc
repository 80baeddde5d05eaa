#include "compiler/contraction/contraction.h"

#include <gtest/gtest.h>

namespace laneshift::compiler {
namespace {

Problem Parsed(const char* text) {
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << text << ": " << problem.error().message;
  return *problem;
}

TEST(Contraction, OfAGemmHasOneRunOfK) {
  const Problem problem = Parsed("gemm m=100 n=60 k=65 batch=3 alpha=0.5 beta=2 bias=m c=f32 epilogue=swiglu");
  const Schedule schedule{.tile_k = 64};
  const Contraction gemm = ContractionOf(problem, schedule);
  EXPECT_FALSE(gemm.RowsArePixels());
  EXPECT_EQ(gemm.m, 100);
  EXPECT_EQ(gemm.n, 60);
  EXPECT_EQ(gemm.columns, 30);
  EXPECT_EQ(gemm.run, 65);
  EXPECT_EQ(gemm.runs, 1);
  EXPECT_EQ(gemm.batch, 3);
  EXPECT_EQ(gemm.Blocks(schedule), 2);
  EXPECT_EQ(gemm.Iterations(schedule), 2);
  EXPECT_EQ(gemm.alpha, 0.5);
  EXPECT_EQ(gemm.beta, 2);
  EXPECT_EQ(gemm.bias, BiasAxis::kM);
  EXPECT_EQ(gemm.Of(ir::Operand::kC).type(), DataType::kF32);
}

// Filters of one tap multiply pixels as a matrix, in any pass, if the schedule reuses nothing and pixels are evenly
// spaced.
TEST(Contraction, OfFiltersOfOneTapIsAProductOfMatrices) {
  const Schedule none{}, im2col{.reuse = Reuse::kIm2col};
  const Problem forward = Parsed("conv n=3 h=7 w=9 c=64 k=80 r=1 s=1 x_pixel=72 bias=k");
  const Contraction conv = ContractionOf(forward, none);
  EXPECT_FALSE(conv.RowsArePixels());
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB, ir::Operand::kC, ir::Operand::kD})
    EXPECT_EQ(conv.Of(operand).kind, SourceKind::kMatrix);
  EXPECT_EQ(conv.m, 3 * 7 * 9);
  EXPECT_EQ(conv.n, 80);
  EXPECT_EQ(conv.run, 64);
  EXPECT_EQ(conv.a.Pitch(), 72);
  EXPECT_EQ(conv.b.inner_axis, ir::Axis::kK);
  EXPECT_EQ(conv.bias, BiasAxis::kN);
  EXPECT_TRUE(ContractionOf(forward, im2col).RowsArePixels());
  EXPECT_TRUE(conv.Under(forward, im2col).RowsArePixels());
  EXPECT_FALSE(ContractionOf(forward, im2col).Under(forward, none).RowsArePixels());

  const Contraction dgrad = ContractionOf(Parsed("conv_dgrad n=3 h=7 w=9 c=64 k=80 r=1 s=1"), none);
  EXPECT_EQ(dgrad.n, 64);
  EXPECT_EQ(dgrad.run, 80);
  EXPECT_EQ(dgrad.b.inner_axis, ir::Axis::kN);

  const Problem backward = Parsed("conv_wgrad n=3 h=7 w=9 c=64 k=80 r=1 s=1");
  const Contraction wgrad = ContractionOf(backward, none);
  EXPECT_FALSE(wgrad.SumsPixels());
  EXPECT_EQ(wgrad.m, 80);
  EXPECT_EQ(wgrad.n, 64);
  EXPECT_EQ(wgrad.run, 3 * 7 * 9);
  EXPECT_EQ(wgrad.a.inner_axis, ir::Axis::kM);

  for (const char* text :
       {"conv n=3 h=7 w=9 c=64 k=80 r=1 s=1 x_row=640", "conv n=3 h=7 w=9 c=64 k=80 r=1 s=1 y_image=5120",
        "conv n=3 h=7 w=9 c=64 k=80 r=1 s=1 stride=2", "conv n=3 h=7 w=9 c=64 k=80 r=1 s=1 pad=1",
        "conv n=3 h=7 w=9 c=64 k=80 r=1 s=1 groups=2", "conv n=3 h=7 w=9 c=64 k=80 r=1 s=3 pad=1"})
    EXPECT_TRUE(ContractionOf(Parsed(text), none).RowsArePixels()) << text;
}

TEST(Contraction, OfGatesHasTwoColumnsForEachOfD) {
  for (const char* text :
       {"gemm m=392 n=128 k=64 epilogue=swiglu", "conv n=2 h=14 w=14 c=64 k=128 r=1 s=1 epilogue=swiglu",
        "conv n=2 h=14 w=14 c=64 k=128 r=3 s=3 pad=1 epilogue=swiglu"}) {
    const Problem problem = *ParseProblem(text);
    const Contraction gated = ContractionOf(problem, {});
    EXPECT_EQ(gated.n, 128) << text;
    EXPECT_EQ(gated.d.run, 64) << text;
  }
}

// Where the sums of many slices are added by another kernel: of filters and of matrices without steps.
TEST(Contraction, AddsManySlicesApart) {
  const auto apart = [](const char* text, int slices) {
    const Schedule schedule{.split_k = slices};
    const Problem problem = Parsed(text);
    return ContractionOf(problem, schedule).AddsSlicesApart(schedule);
  };
  EXPECT_TRUE(apart("conv_wgrad n=3 h=7 w=9 c=64 k=80 r=3 s=3 pad=1", 7));
  EXPECT_TRUE(apart("conv_wgrad n=3 h=7 w=9 c=64 k=80 r=1 s=1", 7));
  EXPECT_TRUE(apart("gemm m=64 n=64 k=8192 beta=1", 7));
  EXPECT_FALSE(apart("gemm m=64 n=64 k=8192 beta=1", 6));
  EXPECT_FALSE(apart("gemm m=64 n=64 k=8192 epilogue=relu", 7));
  EXPECT_FALSE(apart("gemm m=64 n=64 k=8192 a=e4m3 scale=tensor", 7));
}

TEST(Contraction, OfAConvolutionHasARunForEachTap) {
  const Problem problem = Parsed("conv n=2 h=9 w=11 c=96 k=24 r=3 s=5 pad=1,2 groups=2 bias=k");
  Schedule schedule{.tile_k = 32, .reuse = Reuse::kIm2col};
  const Contraction conv = ContractionOf(problem, schedule);
  EXPECT_TRUE(conv.RowsArePixels());
  EXPECT_EQ(conv.m, 2 * 9 * 11);
  EXPECT_EQ(conv.n, 12);
  EXPECT_EQ(conv.run, 48);
  EXPECT_EQ(conv.runs, 15);
  EXPECT_EQ(conv.batch, 2);
  EXPECT_EQ(conv.bias, BiasAxis::kN);
  EXPECT_EQ(conv.Blocks(schedule), 15 * 2);
  EXPECT_EQ(conv.Iterations(schedule), 15 * 2);
  EXPECT_EQ(ContractionOf(problem).m, conv.m);

  // The implicit-GEMM rows are longer than those of the output by the filter's halo; columns are one iteration.
  schedule.reuse = Reuse::kRowOffset;
  EXPECT_EQ(ContractionOf(problem, schedule).m, 2 * 9 * (11 + 4));
  EXPECT_EQ(ContractionOf(problem, schedule).Blocks(schedule), 15 * 2);
  EXPECT_EQ(ContractionOf(problem, schedule).Iterations(schedule), 3 * 2);
  EXPECT_EQ(conv.Under(problem, schedule).m, 2 * 9 * (11 + 4));
  EXPECT_EQ(conv.Under(problem, schedule).geometry.halo, 4);
  EXPECT_EQ(conv.Under(problem, schedule).a.run, 48);

  // Threads that gather read all taps as one run.
  schedule.reuse = Reuse::kIm2col;
  schedule.a_load = LoadPath::kCopy;
  EXPECT_EQ(ContractionOf(problem, schedule).run, 15 * 48);
  EXPECT_EQ(ContractionOf(problem, schedule).runs, 1);
  EXPECT_EQ(ContractionOf(problem, schedule).Iterations(schedule), 23);
}

// A convolution of fewer, wider groups, whose filters lie as the caller stores them.
TEST(Contraction, OfMergedGroupsHasFewerMatrices) {
  const Schedule merged{.b_load = LoadPath::kPack, .reuse = Reuse::kIm2col, .merge_groups = 4};
  const Problem forward = Parsed("conv n=2 h=9 w=11 c=32 k=64 r=3 s=3 pad=1 groups=8");
  const Contraction conv = ContractionOf(forward, merged);
  EXPECT_EQ(conv.merged, 4);
  EXPECT_EQ(conv.batch, 2);
  EXPECT_EQ(conv.n, 32);
  EXPECT_EQ(conv.run, 16);
  EXPECT_EQ(conv.a.run, 16);
  EXPECT_EQ(conv.d.run, 32);
  EXPECT_EQ(conv.b.memory.extents, (ir::StoredTensor::Dimensions{64, 1, 3, 3, 4}));
  EXPECT_FALSE(conv.IsDiagonal());
  EXPECT_EQ(ContractionOf(forward).Under(forward, merged).n, 32);
  EXPECT_EQ(conv.Under(forward, {.reuse = Reuse::kIm2col}).n, 8);
  // What does not divide the groups is refused later, with all groups as they are.
  EXPECT_EQ(ContractionOf(forward, {.reuse = Reuse::kIm2col, .merge_groups = 3}).merged, 1);

  const Problem gradient = Parsed("conv_wgrad n=2 h=9 w=11 c=32 k=64 r=3 s=3 pad=1 groups=8");
  const Contraction wgrad = ContractionOf(gradient, {.merge_groups = 8});
  EXPECT_TRUE(wgrad.IsDiagonal());
  EXPECT_EQ(wgrad.m, 64);
  EXPECT_EQ(wgrad.n, 32);
  EXPECT_EQ(wgrad.batch, 9);
  EXPECT_EQ(wgrad.d.run, 4);
}

TEST(Contraction, OfAGradientOfXIsAConvolutionForEachPhase) {
  const Schedule schedule{.reuse = Reuse::kIm2col};
  const Problem one = Parsed("conv_dgrad n=2 h=9 w=11 c=96 k=24 r=3 s=5 pad=1,2 groups=2");
  ASSERT_EQ(ContractionsOf(one, schedule), 1u);
  const Contraction dgrad = ContractionOf(one, schedule);
  EXPECT_TRUE(dgrad.RowsArePixels());
  EXPECT_EQ(dgrad.m, 2 * 9 * 11);
  EXPECT_EQ(dgrad.n, 48);
  EXPECT_EQ(dgrad.run, 12);
  EXPECT_EQ(dgrad.runs, 15);
  EXPECT_EQ(dgrad.d_rows, "x");
  EXPECT_EQ(dgrad.b.outer_axis, ir::Axis::kK);
  EXPECT_EQ(dgrad.b.inner_axis, ir::Axis::kN);
  EXPECT_EQ(dgrad.d.first, 0);

  // The phase with most taps comes first. Its pixels begin at (1, 1), and are every second one.
  const Problem strided = Parsed("conv_dgrad n=2 h=9 w=11 c=96 k=24 r=3 s=3 pad=1 stride=2 x_pixel=100");
  ASSERT_EQ(ContractionsOf(strided, schedule), 4u);
  const Contraction most = ContractionOf(strided, schedule, 0);
  EXPECT_EQ(most.m, 2 * 4 * 5);
  EXPECT_EQ(most.runs, 4);
  EXPECT_FALSE(most.follows);
  EXPECT_TRUE(ContractionOf(strided, schedule, 1).follows);
  EXPECT_EQ(most.d.first, 11 * 100 + 100);
  EXPECT_EQ(most.d.memory.pitches, (ir::StoredTensor::Dimensions{9900, 9900, 2200, 200, 1}));
  EXPECT_EQ(most.d.memory.extents, (ir::StoredTensor::Dimensions{2, 1, 4, 5, 96}));
  EXPECT_EQ(most.d.align, 8) << "a phase may begin at any pixel";
}

TEST(Contraction, OfAGradientOfFewChannelsHasAPatchOfPixelsForEachPosition) {
  const Schedule schedule{.reuse = Reuse::kIm2col};
  const Problem stem = Parsed("conv_dgrad n=2 h=9 w=11 c=3 k=64 r=7 s=7 pad=3 stride=2");
  ASSERT_EQ(ContractionsOf(stem, schedule), 1u);
  const Contraction dgrad = ContractionOf(stem, schedule);
  EXPECT_EQ(dgrad.m, 2 * 5 * 6);
  EXPECT_EQ(dgrad.n, 4 * 3);
  EXPECT_EQ(dgrad.run, 64);
  EXPECT_EQ(dgrad.runs, 4 * 4);
  EXPECT_EQ(dgrad.geometry.patch, (Spatial{1, 2, 2}));
  EXPECT_EQ(dgrad.d.memory.extents, (ir::StoredTensor::Dimensions{2, 1, 9, 11, 3}));

  // One product for each phase: pixels of 16 bytes, groups, steps that know a column's channel, and where the patch
  // has more taps than all phases, or too many pixels.
  for (const char* phases : {
           "conv_dgrad n=2 h=9 w=11 c=8 k=64 r=7 s=7 pad=3 stride=2",
           "conv_dgrad n=2 h=9 w=11 c=6 k=64 r=7 s=7 pad=3 stride=2 groups=2",
           "conv_dgrad n=2 h=9 w=11 c=3 k=64 r=7 s=7 pad=3 stride=2 epilogue=bias_c",
           "conv_dgrad n=2 w=40 c=3 k=8 s=3 stride=2 dilation=3",
           "conv_dgrad n=1 h=66 w=66 c=3 k=8 r=66 s=66 stride=66",
       }) {
    EXPECT_GT(ContractionsOf(Parsed(phases), schedule), 1u) << phases;
  }
  EXPECT_EQ(
      ContractionsOf(Parsed("conv_dgrad n=2 h=9 w=11 c=3 k=64 r=3 s=3 epilogue=residual+relu stride=2"), schedule), 1u);
}

TEST(Contraction, OfAGradientOfWHasPixelsAlongKAndATapForEachMatrix) {
  const Problem problem = Parsed("conv_wgrad n=2 h=9 w=11 c=96 k=24 r=3 s=5 pad=1,2 stride=2 groups=2");
  const Schedule schedule{.tile_k = 64};
  const Contraction wgrad = ContractionOf(problem, schedule);
  EXPECT_FALSE(wgrad.RowsArePixels());
  EXPECT_TRUE(wgrad.SumsPixels());
  EXPECT_EQ(wgrad.m, 12);
  EXPECT_EQ(wgrad.n, 48);
  EXPECT_EQ(wgrad.run, 2 * 5 * 6);
  EXPECT_EQ(wgrad.runs, 1);
  EXPECT_EQ(wgrad.batch, 2 * 15);
  EXPECT_EQ(wgrad.Blocks(schedule), 1);
  EXPECT_TRUE(wgrad.ReadsTaps(ir::Operand::kB));
  EXPECT_FALSE(wgrad.ReadsTaps(ir::Operand::kA));
  EXPECT_EQ(wgrad.a.kind, SourceKind::kPixels);
  EXPECT_EQ(wgrad.d.kind, SourceKind::kFilter);
}

// Filters of one group whose taps have whole spans of a swizzled tile.
TEST(Contraction, OfAGradientOfWHasTapsAsColumns) {
  const Contraction wgrad =
      ContractionOf(Parsed("conv_wgrad n=2 h=9 w=11 c=192 k=24 r=3 s=5 pad=1,2 beta=1"), Schedule{.tile_k = 64});
  EXPECT_EQ(wgrad.taps, FilterTaps::kColumns);
  EXPECT_EQ(wgrad.m, 24);
  EXPECT_EQ(wgrad.n, 15 * 192);
  EXPECT_EQ(wgrad.run, 2 * 9 * 11);
  EXPECT_EQ(wgrad.batch, 1);
  EXPECT_EQ(wgrad.b.kind, SourceKind::kPixels);
  for (const OperandSource& filters : {wgrad.c, wgrad.d})
    EXPECT_EQ(filters.memory.extents, (ir::StoredTensor::Dimensions{24, 1, 1, 1, 15 * 192}));
}

TEST(Contraction, OfAPackedGradientOfWHasTapsAsColumns) {
  using StoredTensor = ir::StoredTensor;
  const char* text = "conv_wgrad n=2 h=9 w=11 c=3 k=24 r=3 s=5 pad=2 stride=2 dilation=2,1";
  Schedule schedule{.tile_k = 64};
  schedule.b_load = LoadPath::kPack;
  Contraction wgrad = ContractionOf(Parsed(text), schedule);
  EXPECT_EQ(wgrad.taps, FilterTaps::kPackedColumns);
  EXPECT_EQ(wgrad.m, 24);
  EXPECT_EQ(wgrad.n, 15 * 3);
  EXPECT_EQ(wgrad.run, 2 * 5 * 6);
  EXPECT_EQ(wgrad.batch, 1);
  EXPECT_EQ(wgrad.d.memory.extents, (StoredTensor::Dimensions{24, 1, 1, 1, 15 * 3}));

  schedule.b_load = LoadPath::kTma;
  wgrad = ContractionOf(Parsed(text), schedule);
  EXPECT_EQ(wgrad.taps, FilterTaps::kMatrices);
  EXPECT_EQ(wgrad.n, 3);
  EXPECT_EQ(wgrad.batch, 15);
  EXPECT_EQ(wgrad.d.memory.extents, (StoredTensor::Dimensions{24, 1, 3, 5, 3}));

  schedule.b_load = LoadPath::kPack;
  for (const char* other : {
           "conv_wgrad n=2 h=9 w=11 c=8 k=24 r=3 s=5",                   // pixels of 16 bytes
           "conv_wgrad n=2 h=9 w=11 c=3 k=24 r=1 s=1",                   // one tap
           "conv_wgrad n=2 h=9 w=11 c=3 k=24 r=3 s=5 w_tap=4",           // gaps between the taps
           "conv_wgrad n=2 h=9 w=11 c=3 k=24 r=3 s=5 z_pixel=4 beta=1",  // the same of C
           "conv_wgrad n=2 h=9 w=11 c=6 k=24 r=3 s=5 groups=2",
       }) {
    const Problem problem = Parsed(other);
    EXPECT_EQ(ContractionOf(problem, schedule).taps, FilterTaps::kMatrices) << other;
  }
}

// All channels of a pixel are columns of one matrix, K are the taps, and the index has whole boxes.
TEST(Contraction, OfADirectConvolutionJoinsTheChannels) {
  const Problem problem = Parsed("conv n=2 h=9 w=11 c=24 k=24 r=3 s=5 pad=1,2 groups=24 beta=1");
  Schedule direct{.tile_m = 48, .tile_n = 64, .tile_k = 16};
  direct.math_warpgroups = 2;
  direct.reuse = Reuse::kDirect;
  const auto expect_joined = [&](const Contraction& joined, int64_t run, int64_t positions) {
    EXPECT_EQ(joined.geometry.direct_run, run);
    EXPECT_EQ(joined.m, positions);
    EXPECT_EQ(joined.n, 24);
    EXPECT_EQ(joined.run, 15);
    EXPECT_EQ(joined.runs, 1);
    EXPECT_EQ(joined.batch, 1);
    EXPECT_EQ(joined.Blocks(direct), 1);
    for (const OperandSource& pixels : {joined.a, joined.c, joined.d}) EXPECT_EQ(pixels.run, 24);
  };
  // Boxes of 4 and of 8 lines of 12 outputs: 12 lines and 16 lines for 9.
  expect_joined(ContractionOf(problem, direct), 4, 2 * 12 * 12);
  direct.tile_m = 96;
  expect_joined(ContractionOf(problem, direct), 4, 2 * 16 * 12);
  // From one schedule to the other and back.
  const Contraction groups = ContractionOf(problem);
  EXPECT_EQ(groups.n, 1);
  EXPECT_EQ(groups.batch, 24);
  EXPECT_EQ(groups.a.run, 1);
  const Contraction joined = groups.Under(problem, direct);
  expect_joined(joined, 4, 2 * 16 * 12);
  const Contraction again = joined.Under(problem, Schedule{.reuse = Reuse::kIm2col});
  EXPECT_EQ(again.n, 1);
  EXPECT_EQ(again.batch, 24);
  EXPECT_EQ(again.d.run, 1);
  EXPECT_EQ(again.geometry.padded_q, 11);
}

TEST(Contraction, OfADirectGradientOfXReadsFiltersAsRowsOfTaps) {
  const Problem problem = Parsed("conv_dgrad n=2 h=9 w=11 c=24 k=24 r=3 s=3 pad=1 groups=24");
  EXPECT_EQ(ContractionOf(problem).b.inner_axis, ir::Axis::kN);
  const Contraction direct = ContractionOf(problem, Schedule{.reuse = Reuse::kDirect});
  EXPECT_EQ(direct.b.outer_axis, ir::Axis::kN);
  EXPECT_EQ(direct.b.inner_axis, ir::Axis::kK);
  EXPECT_EQ(direct.run, 9);
}

// One contraction for all phases: pixel i and tap t meet pixel (i - pad + t * dilation) / stride of y.
TEST(Contraction, OfADirectGradientOfXTakesAllPhases) {
  const Problem problem = Parsed("conv_dgrad n=2 h=9 w=11 c=24 k=24 r=3 s=5 pad=1,2 stride=2,1 groups=24");
  const Schedule phases{.reuse = Reuse::kIm2col}, direct{.tile_m = 36, .reuse = Reuse::kDirect};
  EXPECT_EQ(ContractionsOf(problem, phases), 2u);
  ASSERT_EQ(ContractionsOf(problem, direct), 1u);
  const auto expect_whole = [](const Contraction& whole) {
    EXPECT_TRUE(whole.geometry.divides);
    EXPECT_EQ(whole.geometry.stride, (Spatial{1, 2, 1}));
    EXPECT_EQ(whole.geometry.pad, (Spatial{0, 1, 2}));
    EXPECT_EQ(whole.geometry.output, (Spatial{1, 9, 11}));
    EXPECT_EQ(whole.geometry.input, (Spatial{1, 5, 11}));
    EXPECT_EQ(whole.m, 2 * 9 * 12);  // boxes of 3 lines of 12 outputs
    EXPECT_EQ(whole.run, 15);
    EXPECT_EQ(whole.d.first, 0);
    EXPECT_EQ(whole.d.memory.extents, (ir::StoredTensor::Dimensions{2, 1, 9, 11, 24}));
  };
  expect_whole(ContractionOf(problem, direct));
  // From one schedule to the other and back.
  const Contraction phase = ContractionOf(problem, phases);
  expect_whole(phase.Under(problem, direct));
  const Contraction again = ContractionOf(problem, direct).Under(problem, phases);
  EXPECT_FALSE(again.geometry.divides);
  EXPECT_EQ(again.m, phase.m);
  EXPECT_EQ(again.d.memory.extents, phase.d.memory.extents);
  EXPECT_EQ(again.d.memory.pitches, phase.d.memory.pitches);
}

// Filters are rows, taps columns, and K the positions, in boxes of whole runs of a thread.
TEST(Contraction, OfADirectGradientOfFiltersJoinsTheChannels) {
  const Problem problem = Parsed("conv_wgrad n=2 h=9 w=11 c=24 k=24 r=3 s=5 pad=1,2 groups=24 beta=1");
  const Schedule tensor{.tile_k = 64}, direct{.tile_k = 48, .reuse = Reuse::kDirect};
  const auto expect_joined = [](const Contraction& joined) {
    EXPECT_EQ(joined.taps, FilterTaps::kColumns);
    EXPECT_EQ(joined.geometry.direct_run, 8);
    EXPECT_EQ(joined.m, 24);
    EXPECT_EQ(joined.n, 15);
    EXPECT_EQ(joined.batch, 1);
    EXPECT_EQ(joined.run, 2 * 9 * 16);
    for (const OperandSource& pixels : {joined.a, joined.b}) EXPECT_EQ(pixels.run, 24);
    EXPECT_EQ(joined.d.memory.extents, (ir::StoredTensor::Dimensions{24, 1, 1, 1, 15}));
  };
  expect_joined(ContractionOf(problem, direct));
  // From one schedule to the other and back.
  const Contraction groups = ContractionOf(problem, tensor);
  EXPECT_EQ(groups.m, 1);
  EXPECT_EQ(groups.batch, 24 * 15);
  expect_joined(groups.Under(problem, direct));
  const Contraction again = ContractionOf(problem, direct).Under(problem, tensor);
  EXPECT_EQ(again.m, 1);
  EXPECT_EQ(again.batch, 24 * 15);
  for (const OperandSource& pixels : {again.a, again.b}) EXPECT_EQ(pixels.run, 1);
}

TEST(Contraction, IsDepthwiseWhereEveryChannelIsAGroup) {
  EXPECT_TRUE(IsDepthwise(Parsed("conv h=9 w=11 c=24 k=24 r=3 s=3 groups=24")));
  EXPECT_TRUE(IsDepthwise(Parsed("conv_wgrad h=9 w=11 c=24 k=24 r=3 s=3 groups=24")));
  EXPECT_FALSE(IsDepthwise(Parsed("conv h=9 w=11 c=24 k=48 r=3 s=3 groups=24")));
  EXPECT_FALSE(IsDepthwise(Parsed("conv h=9 w=11 c=24 k=24 r=3 s=3 groups=12")));
  EXPECT_FALSE(IsDepthwise(Parsed("conv h=9 w=11 c=1 k=1 r=3 s=3")));
  EXPECT_FALSE(IsDepthwise(Parsed("gemm m=1 n=1 k=1")));
}

}  // namespace
}  // namespace laneshift::compiler
