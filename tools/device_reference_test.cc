// The GPU's reference against the host's, both on the same wrong and right outputs; the emulator stands for the GPU.
#include "tools/device_reference.h"

#include <gtest/gtest.h>

#include "runtime/engine_parts.h"
#include "tools/device_operands.h"
#include "tools/gpu_timing.h"
#include "tools/host_reference.h"
#include "tools/settings.h"

namespace laneshift::tools {
namespace {

// One problem on the emulated device.
struct Case {
  explicit Case(const Engine& engine, std::string_view text)
      : problem(std::get<GemmProblem>(*ParseProblem(text))),
        stream(*device::Stream::Create(engine.parts().device.context())),
        host(RandomOperands(problem)),
        device(*DeviceOperands::Upload(engine.parts().device.context(), stream, problem, host)) {}

  static HostOperands RandomOperands(const GemmProblem& p) {
    HostOperands operands;
    operands.a = HostMatrix::Random(ShapeOf(p, Matrix::kA), Matrix::kA, 1);
    operands.b = HostMatrix::Random(ShapeOf(p, Matrix::kB), Matrix::kB, 1);
    if (p.beta != 0) operands.c = HostMatrix::Random(ShapeOf(p, Matrix::kC), Matrix::kC, 1);
    if (p.bias != BiasAxis::kNone) operands.bias = HostMatrix::Random(ShapeOf(p, Matrix::kBias), Matrix::kBias, 1);
    return operands;
  }

  GemmProblem problem;
  device::Stream stream;
  HostOperands host;
  DeviceOperands device;
};

class DeviceReference : public testing::TestWithParam<const char*> {};

TEST_P(DeviceReference, AgreesWithTheHost) {
  const auto nvrtc = Nvrtc::Open(Settings::FromEnvironment().library_directories);
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  Case c(*engine, GetParam());
  const auto compare = [&] {
    return CompareOnDevice(*nvrtc, engine->parts().device, c.stream, c.problem, c.device.arguments(), CodeForm::kPtx);
  };

  // D was never written: every element is NaN.
  const auto poisoned = compare();
  ASSERT_TRUE(poisoned.has_value()) << poisoned.error().message;
  EXPECT_EQ(poisoned->not_finite, c.problem.batch * c.problem.m * c.problem.n);
  EXPECT_EQ(poisoned->first_not_finite, 0);

  const auto plan = engine->MakePlan(c.problem);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_TRUE(plan->Execute(c.stream.handle(), c.device.arguments()).has_value());
  HostMatrix d = HostMatrix::Poisoned(ShapeOf(c.problem, Matrix::kD));
  ASSERT_TRUE(c.device.Download(c.stream, d).has_value());
  const Comparison on_host = CompareAll(c.problem, c.host, d);
  const auto on_device = compare();
  ASSERT_TRUE(on_device.has_value()) << on_device.error().message;
  EXPECT_EQ(on_device->compared, on_host.compared);
  EXPECT_EQ(on_device->not_finite, 0);
  EXPECT_EQ(on_device->first_not_finite, -1);
  EXPECT_NEAR(on_device->error_squares, on_host.error_squares, 1e-9 * on_host.error_squares);
  EXPECT_NEAR(on_device->reference_squares, on_host.reference_squares, 1e-9 * on_host.reference_squares);
  EXPECT_NEAR(on_device->rounding_squares, on_host.rounding_squares, 1e-9 * on_host.rounding_squares);
  EXPECT_TRUE(on_device->Accepted(ErrorBound(c.problem.d)));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceReference,
                         testing::Values("gemm m=70 n=33 k=20 a=bf16 d=bf16",
                                         "gemm m=9 n=65 k=40 a=f16 d=f16 batch=2 a_major=m b_major=n beta=0.5 bias=m",
                                         "gemm m=5 n=7 k=3 a=f16 d=f32 lda=11 ldd=9 alpha=-2 bias=n"));

TEST(GpuTiming, TimesEveryContenderOnEveryCall) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const Case c(*engine, "gemm m=16 n=16 k=16");
  const auto plan = engine->MakePlan(c.problem);
  int calls[2] = {};
  std::vector<const void*> inputs;
  const auto contender = [&](int index) {
    return [&, index](const GemmArguments& arguments) {
      ++calls[index];
      inputs.push_back(arguments.a);
      return plan->Execute(c.stream.handle(), arguments);
    };
  };
  const auto medians = MedianMicroseconds(engine->parts().device, c.stream, c.device, {contender(0), contender(1)}, 1);
  ASSERT_TRUE(medians.has_value()) << medians.error().message;
  ASSERT_EQ(medians->size(), 2u);
  EXPECT_GT((*medians)[0], 0);
  EXPECT_GE(calls[0], kMinTimedCalls);
  EXPECT_EQ(calls[0], calls[1]);
  // Neighbouring calls find other operands.
  for (size_t i = 1; i < inputs.size(); ++i) EXPECT_NE(inputs[i], inputs[i - 1]);
}

}  // namespace
}  // namespace laneshift::tools
