// The double-precision convolution against hand-made sums, and against the definition in problem.h.
#include <gtest/gtest.h>

#include <vector>

#include "measure/reference/host_reference.h"

namespace laneshift::measure {
namespace {

HostTensor Filled(const Problem& problem, OperandRole role, const std::vector<float>& values) {
  HostTensor tensor = HostTensor::Poisoned(Stored(problem, role));
  EXPECT_EQ(tensor.shape.Elements(), static_cast<int64_t>(values.size())) << ir::NameOf(problem, role);
  const auto inner = static_cast<size_t>(tensor.shape.Inner());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = tensor.shape.RowStart(static_cast<int64_t>(i / inner)) + static_cast<int64_t>(i % inner);
    StoreElement(tensor.bytes.data(), tensor.shape.type, at, values[i]);
  }
  return tensor;
}

struct ByHand {
  const char* problem;
  std::vector<float> x, w, z, bias, y;
};

class ConvByHand : public testing::TestWithParam<ByHand> {};

TEST_P(ConvByHand, IsWhatTheReferenceSays) {
  const ByHand& c = GetParam();
  const auto problem = ParseProblem(c.problem);
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  HostOperands operands{
      .a = Filled(*problem, OperandRole::kA, c.x), .b = Filled(*problem, OperandRole::kB, c.w), .c = {}, .bias = {}};
  if (!c.z.empty()) operands.c = Filled(*problem, OperandRole::kC, c.z);
  if (!c.bias.empty()) operands.bias = Filled(*problem, OperandRole::kBias, c.bias);
  HostTensor y = Filled(*problem, OperandRole::kD, c.y);
  const auto count = static_cast<int64_t>(c.y.size());
  for (const Comparison& right : {CompareAll(*problem, operands, y), CompareSample(*problem, operands, y, 50, 1)}) {
    EXPECT_EQ(right.error_squares, 0);
    EXPECT_EQ(right.not_finite, 0);
  }
  double squares = 0;
  for (const float value : c.y) squares += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_EQ(CompareAll(*problem, operands, y).reference_squares, squares);
  // Every element counts: each off-by-one element is found.
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> wrong = c.y;
    wrong[static_cast<size_t>(i)] += 1;
    const Comparison comparison = CompareAll(*problem, operands, Filled(*problem, OperandRole::kD, wrong));
    EXPECT_EQ(comparison.compared, count);
    EXPECT_EQ(comparison.error_squares, 1) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvByHand,
    testing::Values(
        // The filter is not flipped: 0*1 + 1*10 + 2*100, 1*1 + 2*10 + 3*100, ...
        ByHand{"conv w=4 c=1 k=1 s=3 pad=1 y=f32", {1, 2, 3, 4}, {1, 10, 100}, {}, {}, {210, 321, 432, 43}},
        ByHand{
            "conv h=3 w=3 c=1 k=1 r=2 s=2 y=f32", {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 4}, {}, {}, {37, 47, 67, 77}},
        // Stride 2 down, 1 across; padded above by one row, on the right by one column.
        ByHand{"conv h=3 w=2 c=1 k=1 r=2 s=2 pad=1:0,0:1 stride=2,1 y=f32",
               {1, 2, 3, 4, 5, 6},
               {1, 10, 100, 1000},
               {},
               {},
               {2100, 200, 6543, 604}},
        // Taps two apart, the image padded on the left only.
        ByHand{"conv w=5 c=1 k=1 s=3 pad=2:0 dilation=2 y=f32", {1, 2, 3, 4, 5}, {1, 10, 100}, {}, {}, {310, 420, 531}},
        // Channels are innermost; two filters.
        ByHand{"conv w=2 c=2 k=2 s=1 y=f32", {1, 2, 3, 4}, {1, 10, 100, 1000}, {}, {}, {21, 2100, 43, 4300}},
        // Each group reads its own channels.
        ByHand{"conv w=1 c=4 k=2 s=1 groups=2 y=f32", {1, 2, 3, 4}, {1, 10, 100, 1000}, {}, {}, {21, 4300}},
        // Depth, and two images.
        ByHand{"conv n=2 d=2 h=1 w=1 c=1 k=1 t=2 r=1 s=1 y=f32", {3, 5, 2, 7}, {1, 10}, {}, {}, {53, 72}},
        // A filter larger than the image.
        ByHand{"conv h=1 w=1 c=1 k=1 r=3 s=3 pad=1 y=f32", {7}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}, {}, {35}},
        // 2 * 21 + 3 * 1 + 5, 2 * 2100 + 3 * 10 + 6; pitches leave gaps.
        ByHand{"conv w=1 c=2 k=2 s=1 y=f32 alpha=2 beta=3 bias=k x_pixel=5 w_filter=4 y_pixel=3 z_pixel=7",
               {1, 2},
               {1, 10, 100, 1000},
               {1, 10},
               {5, 6},
               {50, 4236}},
        // Only padding under the outer taps.
        ByHand{"conv w=1 c=1 k=1 s=1 pad=2 y=f32 bias=k", {3}, {4}, {}, {1}, {1, 1, 13, 1, 1}}));

// The definition in problem.h with independent offsets, for output element (n, o, p, q, k).
double Definition(const ConvProblem& p, const HostOperands& operands, int64_t n, const Spatial& out, int64_t k) {
  const auto offset = [](const ConvPitches& pitch, int64_t image, int64_t d, int64_t h, int64_t w, int64_t c) {
    return image * pitch.image + d * pitch.plane + h * pitch.row + w * pitch.pixel + c;
  };
  const int64_t channels = p.c / p.groups, group = k / (p.k / p.groups);
  double sum = 0;
  for (int64_t t = 0; t < p.filter[kDepth]; ++t) {
    for (int64_t r = 0; r < p.filter[kHeight]; ++r) {
      for (int64_t s = 0; s < p.filter[kWidth]; ++s) {
        const int64_t d = out[kDepth] * p.stride[kDepth] - p.pad_before[kDepth] + t * p.dilation[kDepth];
        const int64_t h = out[kHeight] * p.stride[kHeight] - p.pad_before[kHeight] + r * p.dilation[kHeight];
        const int64_t w = out[kWidth] * p.stride[kWidth] - p.pad_before[kWidth] + s * p.dilation[kWidth];
        if (d < 0 || d >= p.input[kDepth] || h < 0 || h >= p.input[kHeight] || w < 0 || w >= p.input[kWidth]) continue;
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t at_x = offset(p.x_pitch, n, d, h, w, group * channels + c);
          const int64_t at_w = offset(p.w_pitch, k, t, r, s, c);
          sum += static_cast<double>(ElementAt(operands.a.bytes.data(), p.x, at_x)) *
                 static_cast<double>(ElementAt(operands.b.bytes.data(), p.w, at_w));
        }
      }
    }
  }
  double value = p.alpha * sum;
  const int64_t at_z = offset(p.z_pitch, n, out[kDepth], out[kHeight], out[kWidth], k);
  if (p.beta != 0) value += p.beta * static_cast<double>(ElementAt(operands.c.bytes.data(), p.z, at_z));
  if (p.bias != ConvBias::kNone) value += static_cast<double>(ElementAt(operands.bias.bytes.data(), p.y, k));
  return value;
}

HostTensor ComputeByDefinition(const ConvProblem& p, const HostOperands& operands) {
  HostTensor y = HostTensor::Poisoned(Stored(p, OperandRole::kD));
  const Spatial extents = p.Output();
  for (int64_t n = 0; n < p.n; ++n) {
    Spatial out;
    for (out[kDepth] = 0; out[kDepth] < extents[kDepth]; ++out[kDepth]) {
      for (out[kHeight] = 0; out[kHeight] < extents[kHeight]; ++out[kHeight]) {
        for (out[kWidth] = 0; out[kWidth] < extents[kWidth]; ++out[kWidth]) {
          const int64_t at = n * p.y_pitch.image + out[kDepth] * p.y_pitch.plane + out[kHeight] * p.y_pitch.row +
                             out[kWidth] * p.y_pitch.pixel;
          for (int64_t k = 0; k < p.k; ++k) {
            StoreElement(y.bytes.data(), p.y, at + k, static_cast<float>(Definition(p, operands, n, out, k)));
          }
        }
      }
    }
  }
  return y;
}

class ConvReference : public testing::TestWithParam<const char*> {};

TEST_P(ConvReference, AgreesWithTheDefinition) {
  const auto problem = ParseProblem(GetParam());
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  const HostOperands operands = HostOperands::Random(*problem, 5);
  const HostTensor y = ComputeByDefinition(std::get<ConvProblem>(*problem), operands);
  const Comparison all = CompareAll(*problem, operands, y);
  EXPECT_EQ(all.compared, y.shape.Elements());
  EXPECT_EQ(all.not_finite, 0);
  EXPECT_GT(all.reference_squares, 0);
  EXPECT_LT(all.RelativeError(), 1e-7) << GetParam();  // y is the reference rounded to f32
  EXPECT_LT(CompareSample(*problem, operands, y, 200, 1).RelativeError(), 1e-7);
  EXPECT_FALSE(FindOverwrittenPadding(y).has_value());
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvReference,
    testing::Values("conv n=2 h=9 w=11 c=3 k=70 r=7 s=7 pad=3 stride=2 y=f32",
                    "conv n=1 h=40 w=40 c=5 k=3 r=3 s=3 pad=1:0,0:2 dilation=2,1 y=f32 alpha=0.5 beta=-2 bias=k",
                    "conv n=3 h=5 w=4 c=12 k=18 r=2 s=3 pad=1 groups=3 x=f16 y=f32 bias=k",
                    "conv n=2 d=4 h=5 w=6 c=4 k=8 t=3 r=2 s=3 pad=1,0,1:2 stride=2,1,2 y=f32 beta=1",
                    "conv n=2 d=3 h=4 w=5 c=6 k=4 t=2 r=2 s=2 groups=2 y=f32 beta=1 x_pixel=9 x_row=50 x_plane=210 "
                    "x_image=700 w_tap=5 w_row=11 w_plane=23 w_filter=51 z_pixel=5 z_row=23 z_plane=80 z_image=200 "
                    "y_pixel=7 y_row=30 y_plane=93 y_image=205",
                    "conv n=4 w=17 c=2 k=2 s=11 pad=5 groups=2 x=f16 y=f32"));

TEST(ConvReference, FindsElementsThatWereNeverWritten) {
  const auto problem = ParseProblem("conv n=2 h=4 w=5 c=3 k=6 r=3 s=3 pad=1 y_pixel=8");
  const HostOperands operands = HostOperands::Random(*problem, 5);
  HostTensor y = ComputeByDefinition(std::get<ConvProblem>(*problem), operands);
  const int64_t element = ((1 * 4 + 2) * 5 + 3) * 6 + 4;
  StoreElement(y.bytes.data(), y.shape.type, y.shape.RowStart(element / 6) + element % 6,
               ElementAt(HostTensor::Poisoned(y.shape).bytes.data(), y.shape.type, 0));
  const Comparison comparison = CompareAll(*problem, operands, y);
  EXPECT_EQ(comparison.not_finite, 1);
  EXPECT_EQ(comparison.first_not_finite, element);
  EXPECT_EQ(y.shape.PrintIndex(element), "(1, 2, 3, 4)");
}

}  // namespace
}  // namespace laneshift::measure
