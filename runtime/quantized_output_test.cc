// D in blocks with scale factors: bit for bit what laneshift::Quantize makes of the D of f32 that the same schedule
// computes, and an operand of the next product.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/small_float.h"
#include "base/text.h"
#include "laneshift/engine.h"
#include "laneshift/host_run.h"
#include "laneshift/quantize.h"

namespace laneshift {
namespace {

using base::Cat;

Result<Engine> OpenEmulator(const char* target) {
  return Engine::Open({.device = "emulator", .target = target, .store_directory = ":memory:"});
}

std::vector<uint16_t> RandomBf16(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  // Rows of many magnitudes, so that the factors differ.
  std::vector<uint16_t> numbers(count);
  for (uint16_t& number : numbers) {
    const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
    number = base::FloatToBf16(
        sign * std::ldexp(1.0f + static_cast<float>(random() % 128) / 128, -static_cast<int>(random() % 12)));
  }
  return numbers;
}

struct QuantizedOperand {
  QuantizedTensor shape{};
  std::vector<uint8_t> elements{}, factors{};

  void Allocate() {
    const QuantizedBytes bytes = BytesOf(shape).value();
    elements.assign(bytes.elements, 0xee);
    factors.assign(bytes.factors, 0xee);
  }
};

struct Case {
  const char* target;
  DataType type;
  OutputScaling scaling;
  float scale;
  const char *problem, *schedule;
  int64_t batch, m, columns;
};

constexpr auto kMx = OutputScaling::kMx;
constexpr auto kNv = OutputScaling::kNv;

// The steps are exact functions of an f32, whatever the type of D.
TEST(QuantizedOutput, AsTheHostQuantises) {
  const Case cases[] = {
      {"sm_100a", DataType::kE4m3, kMx, 1, "gemm m=150 n=200 k=72", "tile=128x128x64 stages=3", 1, 150, 200},
      {"sm_100a", DataType::kE5m2, kMx, 1, "gemm m=70 n=96 k=72 batch=2", "tile=64x64x64 stages=3", 2, 70, 96},
      {"sm_100a", DataType::kE2m1, kMx, 1, "gemm m=150 n=224 k=72", "tile=128x128x64 stages=3", 1, 150, 224},
      {"sm_100a", DataType::kE2m1, kNv, 3.7f, "gemm m=150 n=224 k=72", "tile=128x128x64 stages=3", 1, 150, 224},
      {"sm_100a", DataType::kE2m1, kNv, 0.01f, "gemm m=150 n=96 k=72 alpha=0.3", "tile=128x64x64 stages=3", 1, 150, 96},
      {"sm_90a", DataType::kE4m3, kMx, 1, "gemm m=150 n=200 k=72", "tile=128x128x64 stages=3 math=2", 1, 150, 200},
      {"sm_90a", DataType::kE5m2, kMx, 1, "gemm m=70 n=96 k=72 batch=2 epilogue=relu", "tile=64x96x64 stages=3", 2, 70,
       96},
  };
  for (const Case& c : cases) {
    const auto engine = OpenEmulator(c.target);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    const std::string text = Cat(c.problem, " a=bf16 b=bf16 d=");
    const auto schedule = ParseSchedule(c.schedule);
    ASSERT_TRUE(schedule.has_value());
    const auto plain = ParseProblem(text + "f32");
    QuantizedOperand wanted{
        .shape = {.batch = c.batch, .rows = c.m, .columns = c.columns, .type = c.type, .scaling = c.scaling}};
    wanted.Allocate();
    QuantizedOperand got = wanted;
    const auto quantized = ParseProblem(Cat(text, DataTypeName(c.type), " d_scale=", c.scaling == kMx ? "mx" : "nv"));
    ASSERT_TRUE(quantized.has_value()) << quantized.error().message;
    const auto& gemm = std::get<GemmProblem>(*quantized);
    const std::vector<uint16_t> a = RandomBf16(static_cast<size_t>(gemm.batch * gemm.m * gemm.k), 1);
    const std::vector<uint16_t> b = RandomBf16(static_cast<size_t>(gemm.batch * gemm.n * gemm.k), 2);
    std::vector<float> d(static_cast<size_t>(c.batch * c.m * c.columns));
    Status ran = RunFromHost(*engine, *plain, GemmArguments{.a = a.data(), .b = b.data(), .d = d.data()}, *schedule);
    ASSERT_TRUE(ran.has_value()) << c.problem << ": " << ran.error().message;
    ran = RunFromHost(*engine, *quantized,
                      GemmArguments{.a = a.data(),
                                    .b = b.data(),
                                    .d = got.elements.data(),
                                    .scale_d = &c.scale,
                                    .block_scale_d = got.factors.data()},
                      *schedule);
    ASSERT_TRUE(ran.has_value()) << c.problem << ": " << ran.error().message;
    ASSERT_TRUE(
        Quantize(wanted.shape, DataType::kF32, d.data(), c.scale, wanted.elements.data(), wanted.factors.data()));
    EXPECT_EQ(got.factors, wanted.factors) << c.target << " " << c.problem << " " << DataTypeName(c.type);
    EXPECT_EQ(got.elements, wanted.elements) << c.target << " " << c.problem << " " << DataTypeName(c.type);
  }
}

// D of the first product is A of the second one, without a change. The sum of the second product is that of the
// dequantised operands.
void Chain(const char* first, const char* second, const QuantizedTensor& middle, float scale) {
  const auto engine = OpenEmulator("sm_100a");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto one = ParseProblem(first), two = ParseProblem(second);
  ASSERT_TRUE(one.has_value()) << one.error().message;
  ASSERT_TRUE(two.has_value()) << two.error().message;
  const auto& g1 = std::get<GemmProblem>(*one);
  const auto& g2 = std::get<GemmProblem>(*two);
  ASSERT_EQ(g2.k, middle.columns);
  const std::vector<uint16_t> a = RandomBf16(static_cast<size_t>(g1.m * g1.k), 3);
  const std::vector<uint16_t> b = RandomBf16(static_cast<size_t>(g1.n * g1.k), 4);
  QuantizedOperand d{.shape = middle};
  d.Allocate();
  const GemmArguments from{
      .a = a.data(), .b = b.data(), .d = d.elements.data(), .scale_d = &scale, .block_scale_d = d.factors.data()};
  Status ran = RunFromHost(*engine, *one, from);
  ASSERT_TRUE(ran.has_value()) << ran.error().message;

  QuantizedOperand weights{.shape = {.rows = g2.n, .columns = g2.k, .type = g2.b, .scaling = middle.scaling}};
  weights.Allocate();
  const std::vector<uint16_t> w = RandomBf16(static_cast<size_t>(g2.n * g2.k), 5);
  ASSERT_TRUE(
      Quantize(weights.shape, DataType::kBf16, w.data(), scale, weights.elements.data(), weights.factors.data()));
  const float inverse = 1 / scale;
  std::vector<float> result(static_cast<size_t>(g2.m * g2.n));
  ran = RunFromHost(*engine, *two,
                    GemmArguments{.a = d.elements.data(),
                                  .b = weights.elements.data(),
                                  .d = result.data(),
                                  .scale_a = d.factors.data(),
                                  .scale_b = weights.factors.data(),
                                  .tensor_scale_a = &inverse,
                                  .tensor_scale_b = &inverse});
  ASSERT_TRUE(ran.has_value()) << ran.error().message;

  std::vector<float> left(static_cast<size_t>(g2.m * g2.k)), right(static_cast<size_t>(g2.n * g2.k));
  ASSERT_TRUE(Dequantize(middle, d.elements.data(), d.factors.data(), scale, DataType::kF32, left.data()));
  ASSERT_TRUE(
      Dequantize(weights.shape, weights.elements.data(), weights.factors.data(), scale, DataType::kF32, right.data()));
  double norm = 0;
  for (int64_t i = 0; i < g2.m; ++i) {
    for (int64_t j = 0; j < g2.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t q = 0; q < g2.k; ++q) {
        const double product =
            double{left[static_cast<size_t>(i * g2.k + q)]} * right[static_cast<size_t>(j * g2.k + q)];
        sum += product;
        magnitude += std::abs(product);
      }
      EXPECT_NEAR(result[static_cast<size_t>(i * g2.n + j)], sum, 1e-5 * magnitude) << i << " " << j;
      norm += sum * sum;
    }
  }
  EXPECT_GT(norm, 0);
}

TEST(QuantizedOutput, FeedsTheNextProduct) {
  Chain("gemm m=150 n=224 k=72 d=e4m3 d_scale=mx epilogue=gelu", "gemm m=150 n=40 k=224 a=e4m3 d=f32 scale=mx",
        {.rows = 150, .columns = 224, .type = DataType::kE4m3}, 1);
  Chain("gemm m=150 n=192 k=72 d=e2m1 d_scale=mx", "gemm m=150 n=40 k=192 a=e2m1 d=f32 scale=mx",
        {.rows = 150, .columns = 192, .type = DataType::kE2m1}, 1);
}

TEST(QuantizedOutput, FeedsTheNextProductAsNvfp4) {
  Chain("gemm m=150 n=224 k=72 d=e2m1 d_scale=nv", "gemm m=150 n=40 k=224 a=e2m1 d=f32 scale=nv",
        {.rows = 150, .columns = 224, .type = DataType::kE2m1, .scaling = kNv}, 2.5f);
}

// The halves of a layer: gate and up projections, then the one that reads half as many columns.
TEST(QuantizedOutput, FeedsTheNextProductAfterAGatedLinearUnit) {
  Chain("gemm m=150 n=384 k=72 d=e4m3 d_scale=mx epilogue=swiglu", "gemm m=150 n=40 k=192 a=e4m3 d=f32 scale=mx",
        {.rows = 150, .columns = 192, .type = DataType::kE4m3}, 1);
  Chain("gemm m=150 n=384 k=72 d=e2m1 d_scale=nv epilogue=swiglu:halves", "gemm m=150 n=40 k=192 a=e2m1 d=f32 scale=nv",
        {.rows = 150, .columns = 192, .type = DataType::kE2m1, .scaling = kNv}, 2.5f);
}

}  // namespace
}  // namespace laneshift
