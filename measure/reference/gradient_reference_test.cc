// The double-precision gradients against finite differences of the forward convolution, which the definition in
// problem.h gives. The operands are small integers, of which y is bilinear: a difference of one is exact.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/conv_problem.h"
#include "measure/reference/host_reference.h"

namespace laneshift::measure {
namespace {

using Values = std::vector<double>;

// Of x, w or y, dense.
struct Extents {
  int64_t outer;
  Spatial spatial;
  int64_t inner;
  size_t At(int64_t n, int64_t d, int64_t h, int64_t w, int64_t c) const {
    return static_cast<size_t>((((n * spatial[kDepth] + d) * spatial[kHeight] + h) * spatial[kWidth] + w) * inner + c);
  }
  size_t Count() const {
    return static_cast<size_t>(outer * spatial[kDepth] * spatial[kHeight] * spatial[kWidth] * inner);
  }
};
Extents OfX(const ConvProblem& p) { return {p.n, p.input, p.c}; }
Extents OfW(const ConvProblem& p) { return {p.k, p.filter, p.c / p.groups}; }
Extents OfY(const ConvProblem& p) { return {p.n, p.Output(), p.k}; }

Values Integers(size_t count, int seed) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<double>((i * 7 + static_cast<size_t>(seed)) % 5) - 2;
  return values;
}

// The sum over y of y * weight.
double Loss(const ConvProblem& p, const Values& x, const Values& w, const Values& weight) {
  const Extents of_x = OfX(p), of_w = OfW(p), of_y = OfY(p);
  const int64_t channels = p.c / p.groups;
  double loss = 0;
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t o = 0; o < of_y.spatial[kDepth]; ++o)
      for (int64_t u = 0; u < of_y.spatial[kHeight]; ++u)
        for (int64_t v = 0; v < of_y.spatial[kWidth]; ++v)
          for (int64_t k = 0; k < p.k; ++k) {
            double sum = 0;
            for (int64_t t = 0; t < p.filter[kDepth]; ++t)
              for (int64_t r = 0; r < p.filter[kHeight]; ++r)
                for (int64_t s = 0; s < p.filter[kWidth]; ++s) {
                  const int64_t d = o * p.stride[kDepth] - p.pad_before[kDepth] + t * p.dilation[kDepth];
                  const int64_t h = u * p.stride[kHeight] - p.pad_before[kHeight] + r * p.dilation[kHeight];
                  const int64_t q = v * p.stride[kWidth] - p.pad_before[kWidth] + s * p.dilation[kWidth];
                  if (d < 0 || d >= p.input[kDepth] || h < 0 || h >= p.input[kHeight]) continue;
                  if (q < 0 || q >= p.input[kWidth]) continue;
                  const int64_t first = k / (p.k / p.groups) * channels;
                  for (int64_t c = 0; c < channels; ++c)
                    sum += x[of_x.At(n, d, h, q, first + c)] * w[of_w.At(k, t, r, s, c)];
                }
            loss += sum * weight[of_y.At(n, o, u, v, k)];
          }
  return loss;
}

HostTensor Filled(const Problem& problem, OperandRole role, const Values& values) {
  HostTensor tensor = HostTensor::Poisoned(Stored(problem, role));
  EXPECT_EQ(tensor.shape.Elements(), static_cast<int64_t>(values.size())) << ir::NameOf(problem, role);
  const auto inner = static_cast<size_t>(tensor.shape.Inner());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = tensor.shape.RowStart(static_cast<int64_t>(i / inner)) + static_cast<int64_t>(i % inner);
    StoreElement(tensor.bytes.data(), tensor.shape.type, at, static_cast<float>(values[i]));
  }
  return tensor;
}

void ExpectGradient(const std::string& text, const Values& a, const Values& b, const Values& gradient) {
  const auto problem = ParseProblem(text);
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  const HostOperands operands{
      .a = Filled(*problem, OperandRole::kA, a), .b = Filled(*problem, OperandRole::kB, b), .c = {}, .bias = {}};
  const HostTensor d = Filled(*problem, OperandRole::kD, gradient);
  for (const Comparison& found : {CompareAll(*problem, operands, d), CompareSample(*problem, operands, d, 100, 1)}) {
    EXPECT_EQ(found.error_squares, 0) << text;
    EXPECT_EQ(found.not_finite, 0) << text;
    EXPECT_GT(found.reference_squares, 0) << text;
  }
  EXPECT_EQ(CompareAll(*problem, operands, d).compared, static_cast<int64_t>(gradient.size()));
  Values wrong = gradient;
  wrong.back() += 1;
  EXPECT_EQ(CompareAll(*problem, operands, Filled(*problem, OperandRole::kD, wrong)).error_squares, 1) << text;
}

class Gradient : public testing::TestWithParam<const char*> {};

TEST_P(Gradient, IsADifferenceOfTheForwardConvolution) {
  const auto forward = ParseProblem(std::string("conv ") + GetParam() + " y=f32");
  ASSERT_TRUE(forward.has_value()) << forward.error().message;
  const auto& p = std::get<ConvProblem>(*forward);
  Values x = Integers(OfX(p).Count(), 1), w = Integers(OfW(p).Count(), 2);
  const Values weight = Integers(OfY(p).Count(), 3);
  const auto differences = [&](Values& of) {
    Values gradient(of.size());
    for (size_t i = 0; i < of.size(); ++i) {
      of[i] += 1;
      gradient[i] = Loss(p, x, w, weight);
      of[i] -= 2;
      gradient[i] = (gradient[i] - Loss(p, x, w, weight)) / 2;
      of[i] += 1;
    }
    return gradient;
  };
  ExpectGradient(std::string("conv_dgrad ") + GetParam() + " y=bf16 w=bf16 x=f32", weight, w, differences(x));
  ExpectGradient(std::string("conv_wgrad ") + GetParam() + " x=bf16 y=bf16 w=f32", weight, x, differences(w));
}

INSTANTIATE_TEST_SUITE_P(All, Gradient,
                         testing::Values("n=2 h=4 w=5 c=2 k=3 r=3 s=3 pad=1", "w=9 c=2 k=2 s=3 pad=2:0 dilation=2",
                                         "h=5 w=6 c=2 k=3 r=3 s=2 pad=1:0,0:1 stride=2",
                                         "h=5 w=4 c=2 k=2 r=1 s=1 stride=2",
                                         "h=6 w=7 c=1 k=2 r=3 s=2 stride=3,2 pad=1:2 dilation=2,3",
                                         "d=3 h=3 w=4 c=2 k=4 t=2 r=2 s=3 pad=1 stride=2,1,2 groups=2",
                                         "n=2 w=5 c=4 k=6 s=3 pad=1 groups=2"));

// Pitches leave gaps; alpha and beta are those of any problem.
TEST(Gradient, ReadsAndWritesAtThePitchesOfTheProblem) {
  const auto run = [](const char* text, const Values& a, const Values& b, const Values& c, const Values& d) {
    const auto problem = ParseProblem(text);
    ASSERT_TRUE(problem.has_value()) << problem.error().message;
    const HostOperands operands{.a = Filled(*problem, OperandRole::kA, a),
                                .b = Filled(*problem, OperandRole::kB, b),
                                .c = Filled(*problem, OperandRole::kC, c),
                                .bias = {}};
    EXPECT_EQ(CompareAll(*problem, operands, Filled(*problem, OperandRole::kD, d)).error_squares, 0) << text;
  };
  // 2 * (1*1 + 2*100) + 3 * 1, 2 * (1*10 + 2*1000) + 3 * 2
  run("conv_dgrad w=1 c=2 k=2 s=1 x=f32 alpha=2 beta=3 y_pixel=5 w_filter=4 x_pixel=3 z_pixel=7", {1, 2},
      {1, 10, 100, 1000}, {1, 2}, {405, 4026});
  run("conv_wgrad w=1 c=2 k=2 s=1 w=f32 alpha=2 beta=3 x_pixel=5 w_filter=4 y_pixel=3 z_image=7", {1, 2}, {10, 100},
      {1, 2, 3, 4}, {23, 206, 49, 412});
}

}  // namespace
}  // namespace laneshift::measure
