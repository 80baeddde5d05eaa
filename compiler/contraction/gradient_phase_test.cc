#include "compiler/contraction/gradient_phase.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace laneshift::compiler {
namespace {

ConvProblem ConvOf(const char* text) {
  const auto problem = ParseProblem(text);
  EXPECT_TRUE(problem.has_value()) << text << ": " << problem.error().message;
  return problem ? std::get<ConvProblem>(*problem) : ConvProblem{};
}

// Pixel of x, tap of the filter, pixel of y that they meet.
using Meeting = std::tuple<int64_t, int64_t, int64_t>;

// By the definition in problem.h.
std::set<Meeting> MeetingsOf(const ConvProblem& p, size_t d) {
  std::set<Meeting> meetings;
  for (int64_t out = 0; out < p.Output()[d]; ++out) {
    for (int64_t tap = 0; tap < p.filter[d]; ++tap) {
      const int64_t pixel = out * p.stride[d] - p.pad_before[d] + tap * p.dilation[d];
      if (pixel >= 0 && pixel < p.input[d]) meetings.insert({pixel, tap, out});
    }
  }
  return meetings;
}

class Phases : public testing::TestWithParam<const char*> {};

// Along each dimension the phases together have every pixel once, and the same products as the forward convolution.
TEST_P(Phases, MeetWhatTheForwardConvolutionMeets) {
  const ConvProblem p = ConvOf(GetParam());
  const std::vector<GradientPhase> phases = PhasesOf(p);
  for (size_t d = 0; d < p.stride.size(); ++d) {
    std::set<Meeting> meetings;
    std::set<int64_t> pixels;
    for (const GradientPhase& phase : phases) {
      for (int64_t j = 0; j < phase.pixels[d]; ++j) {
        const int64_t pixel = phase.first[d] + j * p.stride[d];
        EXPECT_LT(pixel, p.input[d]);
        pixels.insert(pixel);
        for (int64_t u = 0; u < phase.taps[d]; ++u) {
          const int64_t tap = phase.last_tap[d] - u * phase.tap_step[d];
          EXPECT_GE(tap, 0);
          EXPECT_LT(tap, p.filter[d]);
          const int64_t out = j - phase.pad[d] + u * phase.dilation[d];
          if (out >= 0 && out < p.Output()[d]) meetings.insert({pixel, tap, out});
        }
      }
    }
    EXPECT_EQ(meetings, MeetingsOf(p, d)) << "dimension " << d;
    EXPECT_EQ(static_cast<int64_t>(pixels.size()), p.input[d]) << "dimension " << d;
  }
  int64_t all = 0;
  for (const GradientPhase& phase : phases) all += phase.pixels[kDepth] * phase.pixels[kHeight] * phase.pixels[kWidth];
  EXPECT_EQ(all, p.input[kDepth] * p.input[kHeight] * p.input[kWidth]) << "each pixel is one phase's";
}

INSTANTIATE_TEST_SUITE_P(
    All, Phases,
    testing::Values("conv_dgrad h=9 w=11 c=8 k=8 r=3 s=3 pad=1", "conv_dgrad w=11 c=8 k=8 s=2 pad=3:2",
                    "conv_dgrad w=11 c=8 k=8 s=5 pad=0:4 dilation=2", "conv_dgrad h=9 w=11 c=8 k=8 r=3 s=3 stride=2",
                    "conv_dgrad h=9 w=12 c=8 k=8 r=1 s=1 stride=2", "conv_dgrad h=9 w=12 c=8 k=8 r=2 s=1 stride=4,3",
                    "conv_dgrad w=20 c=8 k=8 s=4 pad=2 stride=6 dilation=4",
                    "conv_dgrad w=20 c=8 k=8 s=4 pad=5:1 stride=4 dilation=6",
                    "conv_dgrad d=5 h=6 w=7 c=8 k=8 t=3 r=2 s=4 pad=1:2,0,2 stride=2,3,1 dilation=1,2,2",
                    "conv_dgrad h=2 w=1 c=8 k=8 r=3 s=3 stride=4 pad=1",
                    "conv_dgrad h=224 w=223 c=3 k=64 r=7 s=7 stride=2 pad=3", "conv_dgrad w=9 c=3 k=8 s=2 stride=7 pad=1",
                    "conv_dgrad w=40 c=3 k=8 s=3 stride=2 pad=3 dilation=3"));

// The patch has the same products as its phases, at one position of y for each of its taps.
TEST_P(Phases, OfAPatchMeetWhatTheForwardConvolutionMeets) {
  const ConvProblem p = ConvOf(GetParam());
  const GradientPatch patch = PatchOf(p);
  for (size_t d = 0; d < p.stride.size(); ++d) {
    std::set<Meeting> meetings;
    for (int64_t j = 0; j < patch.patches[d]; ++j) {
      for (int64_t u = 0; u < patch.taps[d]; ++u) {
        const int64_t out = j - patch.pad[d] + u * patch.dilation[d];
        for (int64_t i = 0; i < patch.size[d]; ++i) {
          const int64_t pixel = j * patch.size[d] + i, distance = patch.last_tap[d] + i - u * patch.tap_step[d];
          const int64_t tap = distance / p.dilation[d];
          if (distance < 0 || distance % p.dilation[d] != 0 || tap >= p.filter[d]) continue;
          if (pixel < p.input[d] && out >= 0 && out < p.Output()[d]) meetings.insert({pixel, tap, out});
        }
      }
    }
    EXPECT_EQ(meetings, MeetingsOf(p, d)) << "dimension " << d;
    EXPECT_GE(patch.patches[d] * patch.size[d], p.input[d]) << "dimension " << d;
    EXPECT_LT((patch.patches[d] - 1) * patch.size[d], p.input[d]) << "dimension " << d;
  }
  int64_t taps = 0;
  const std::vector<GradientPhase> phases = PhasesOf(p);
  for (const GradientPhase& phase : phases) taps += phase.taps[kDepth] * phase.taps[kHeight] * phase.taps[kWidth];
  EXPECT_EQ(patch.taps_of_phases[kDepth] * patch.taps_of_phases[kHeight] * patch.taps_of_phases[kWidth], taps);
  EXPECT_EQ(patch.Pixels(), static_cast<int64_t>(phases.size()));
}

TEST(Phases, OfStrideOneAreOneWithAllTapsInReverse) {
  const std::vector<GradientPhase> phases =
      PhasesOf(ConvOf("conv_dgrad h=9 w=11 c=8 k=8 r=3 s=5 pad=1:0,4 dilation=2"));
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases[0].pixels, (Spatial{1, 9, 11}));
  EXPECT_EQ(phases[0].taps, (Spatial{1, 3, 5}));
  EXPECT_EQ(phases[0].last_tap, (Spatial{0, 2, 4}));
  EXPECT_EQ(phases[0].tap_step, (Spatial{1, 1, 1}));
  EXPECT_EQ(phases[0].pad, (Spatial{0, 2 * 2 - 1, 4 * 2 - 4}));
  EXPECT_EQ(phases[0].dilation, (Spatial{1, 2, 2}));
}

// No zero is multiplied: a phase has only the taps that meet it.
TEST(Phases, OfStrideTwoShareTheTapsAmongThem) {
  const std::vector<GradientPhase> phases = PhasesOf(ConvOf("conv_dgrad h=8 w=8 c=8 k=8 r=3 s=3 pad=1 stride=2"));
  ASSERT_EQ(phases.size(), 4u);
  int64_t taps = 0;
  for (const GradientPhase& phase : phases) taps += phase.taps[kHeight] * phase.taps[kWidth];
  EXPECT_EQ(taps, 9);
  EXPECT_EQ(phases[0].first, (Spatial{0, 1, 1}));
  EXPECT_EQ(phases[0].taps, (Spatial{1, 2, 2}));
  EXPECT_EQ(phases[0].last_tap, (Spatial{0, 2, 2}));
  EXPECT_EQ(phases[0].tap_step, (Spatial{1, 2, 2}));
  EXPECT_EQ(phases[3].taps, (Spatial{1, 1, 1}));
}

// Of an RGB stem: 4 x 4 pixels of y, where the phases have 49 taps together.
TEST(Phases, OfAPatchShareWhatTheyMeet) {
  const GradientPatch patch = PatchOf(ConvOf("conv_dgrad h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2"));
  EXPECT_EQ(patch.size, (Spatial{1, 2, 2}));
  EXPECT_EQ(patch.patches, (Spatial{1, 112, 112}));
  EXPECT_EQ(patch.taps, (Spatial{1, 4, 4}));
  EXPECT_EQ(patch.pad, (Spatial{0, 1, 1}));
  EXPECT_EQ(patch.dilation, (Spatial{1, 1, 1}));
  EXPECT_EQ(patch.last_tap, (Spatial{0, 5, 5}));
  EXPECT_EQ(patch.tap_step, (Spatial{1, 2, 2}));
}

}  // namespace
}  // namespace laneshift::compiler
