#include "laneshift/host_run.h"

#include <gtest/gtest.h>

#include <vector>

namespace laneshift {
namespace {

TEST(RunFromHost, ComputesAndLeavesThePadding) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto problem = ParseProblem("gemm m=3 n=5 k=4 a=bf16 d=f32 ldd=7 beta=1 alpha=2 bias=n");
  const std::vector<uint16_t> a(3 * 4, 0x3f80), b(5 * 4, 0x4000);  // ones and twos
  const std::vector<float> c(3 * 5, 10), bias = {1, 2, 3, 4, 5};
  std::vector<float> d(3 * 7, -1);
  const Status status =
      RunFromHost(*engine, *problem, {.a = a.data(), .b = b.data(), .c = c.data(), .d = d.data(), .bias = bias.data()});
  ASSERT_TRUE(status.has_value()) << status.error().message;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(d[i * 7 + j], 2 * 8 + 10 + static_cast<float>(j + 1)) << i << " " << j;
  }
  EXPECT_EQ(d[5], -1);
  EXPECT_EQ(d[6], -1);
}

TEST(RunFromHost, BringsBackWhatAnEpilogueWrites) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto problem = ParseProblem("gemm m=3 n=5 k=4 a=bf16 d=f32 epilogue=bias_n+aux+relu+sum_m+amax");
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  const std::vector<uint16_t> a(3 * 4, 0x3f80), b(5 * 4, 0x4000);  // ones and twos
  std::vector<float> bias = {-10, 1, 2, 3, 4}, aux(3 * 5), sums = {100, 200, 300}, d(3 * 5);
  float amax = 1;
  const Status status = RunFromHost(
      *engine, *problem,
      {.a = a.data(), .b = b.data(), .d = d.data(), .epilogue = {bias.data(), aux.data(), sums.data(), &amax}});
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(aux[0], -2);
  EXPECT_EQ(d[0], 0);
  EXPECT_EQ(d[4], 12);
  EXPECT_EQ(sums, std::vector<float>({100 + 42, 200 + 42, 300 + 42}));
  EXPECT_EQ(amax, 12);
}

// y is 1 2 3 and the filter 1 10 100: each pixel of x meets them in reverse. The filter is packed in a workspace.
TEST(RunFromHost, ComputesTheGradientsOfAConvolution) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const std::vector<uint16_t> y = {0x3f80, 0x4000, 0x4040}, w = {0x3f80, 0x4120, 0x42c8};
  const auto dgrad = ParseProblem("conv_dgrad w=3 c=1 k=1 s=3 pad=1 x=f32");
  std::vector<float> x(3, -1);
  const ConvDgradArguments of_x{.y = y.data(), .w = w.data(), .x = x.data()};
  const Status found_x = RunFromHost(*engine, *dgrad, of_x);
  ASSERT_TRUE(found_x.has_value()) << found_x.error().message;
  EXPECT_EQ(x, std::vector<float>({10 + 2, 100 + 20 + 3, 200 + 30}));

  const auto wgrad = ParseProblem("conv_wgrad w=3 c=1 k=1 s=3 pad=1 w=f32");
  std::vector<float> gradient(3, -1);
  const ConvWgradArguments of_w{.y = y.data(), .x = w.data(), .w = gradient.data()};
  const Status found_w = RunFromHost(*engine, *wgrad, of_w);
  ASSERT_TRUE(found_w.has_value()) << found_w.error().message;
  EXPECT_EQ(gradient, std::vector<float>({2 + 30, 1 + 20 + 300, 10 + 200}));

  const Status refused = engine->Run(*dgrad, nullptr, of_x);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("packs operands into one of"), std::string::npos) << refused.error().message;
}

TEST(RunFromHost, NamesAMissingPointer) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  const auto problem = ParseProblem("gemm m=3 n=5 k=4");
  const Status status = RunFromHost(*engine, *problem, GemmArguments{});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(status.error().message.find("pointer a is null"), std::string::npos);
}

TEST(RunFromHost, RefusesTheArgumentsOfAnotherKind) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  const Status status = RunFromHost(*engine, *ParseProblem("gemm m=3 n=5 k=4"), ConvArguments{});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(status.error().message.find("pass GemmArguments"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace laneshift
