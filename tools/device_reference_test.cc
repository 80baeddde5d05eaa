// The GPU's reference against the host's, both on the same wrong and right outputs; the emulator replaces the GPU.
#include "measure/reference/device_reference.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <ostream>

#include "laneshift/device_memory.h"
#include "measure/device_operands.h"
#include "measure/gpu_timing.h"
#include "measure/reference/device_sums.h"
#include "measure/reference/host_reference.h"
#include "runtime/argument_roles.h"
#include "runtime/engine_parts.h"
#include "tools/settings.h"

namespace laneshift::measure {
namespace {

// One problem on the emulated device.
struct Case {
  explicit Case(const Engine& engine, std::string_view text)
      : problem(*ParseProblem(text)),
        stream(*device::Stream::Create(engine.parts().device.context())),
        host(HostOperands::Random(problem, 1)),
        device(*DeviceOperands::Upload(engine.parts().device.context(), stream, problem, host)) {}

  Problem problem;
  device::Stream stream;
  HostOperands host;
  DeviceOperands device;
};

void ExpectAlike(const Comparison& on_device, const Comparison& on_host) {
  EXPECT_EQ(on_device.compared, on_host.compared);
  EXPECT_EQ(on_device.not_finite, on_host.not_finite);
  EXPECT_EQ(on_device.first_not_finite, on_host.first_not_finite);
  EXPECT_NEAR(on_device.error_squares, on_host.error_squares, 1e-9 * on_host.error_squares);
  EXPECT_NEAR(on_device.reference_squares, on_host.reference_squares, 1e-9 * on_host.reference_squares);
  EXPECT_NEAR(on_device.rounding_squares, on_host.rounding_squares, 1e-9 * on_host.rounding_squares);
}

class DeviceReference : public testing::TestWithParam<const char*> {};

TEST_P(DeviceReference, AgreesWithTheHost) {
  const auto nvrtc = Nvrtc::Open(tools::Settings::FromEnvironment().library_directories);
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  Case c(*engine, GetParam());
  const auto compare = [&] {
    return CompareOnDevice(*nvrtc, engine->parts().device, c.stream, c.problem, c.device.arguments(), CodeForm::kPtx);
  };

  // D and what the epilogue stores were never written: every element of floats is NaN.
  int64_t unwritten = Stored(c.problem, OperandRole::kD).Elements();
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(c.problem)) {
    if (operand.written) unwritten += operand.tensor.Elements();
  }
  const auto poisoned = compare();
  ASSERT_TRUE(poisoned.has_value()) << poisoned.error().message;
  if (Stored(c.problem, OperandRole::kD).type == DataType::kS32) {  // which has no NaN
    EXPECT_GT(poisoned->error_squares, 0);
  } else {
    EXPECT_EQ(poisoned->not_finite, unwritten);
    EXPECT_EQ(poisoned->first_not_finite, 0);
  }

  const auto plan = engine->MakePlan(c.problem);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const auto workspace = DeviceMemory::Allocate(*engine, plan->workspace_bytes());
  ASSERT_TRUE(workspace.has_value()) << workspace.error().message;
  const Status executed = plan->Execute(c.stream.handle(), c.device.arguments(), workspace->data());
  ASSERT_TRUE(executed.has_value()) << executed.error().message;
  HostTensor d = HostTensor::Poisoned(Stored(c.problem, OperandRole::kD));
  ASSERT_TRUE(c.device.Download(c.stream, d, c.host).has_value());
  const Comparison on_host = CompareAll(c.problem, c.host, d);
  const auto on_device = compare();
  ASSERT_TRUE(on_device.has_value()) << on_device.error().message;
  ExpectAlike(*on_device, on_host);
  EXPECT_TRUE(on_device->Accepted(ValueErrorsOf(c.problem, engine->parts().target)));
}

TEST(DeviceReferenceOfJumps, IsTheHosts) {
  const auto nvrtc = Nvrtc::Open(tools::Settings::FromEnvironment().library_directories);
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a"});
  const Case c(*engine, "gemm m=16 n=16 k=16 epilogue=rint");
  const auto compared =
      CompareOnDevice(*nvrtc, engine->parts().device, c.stream, c.problem, c.device.arguments(), CodeForm::kPtx);
  ASSERT_FALSE(compared);
  EXPECT_NE(compared.error().message.find("compared on the host"), std::string::npos) << compared.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, DeviceReference,
    testing::Values("gemm m=70 n=33 k=20 a=bf16 d=bf16",
                    "gemm m=9 n=65 k=40 a=f16 d=f16 batch=2 a_major=m b_major=n beta=0.5 bias=m",
                    "gemm m=5 n=7 k=3 a=f16 d=f32 lda=11 ldd=9 alpha=-2 bias=n",
                    "gemm m=21 n=40 k=16 d=f32 ldd=44 epilogue=scale_m:bf16+aux:bf16+gelu+dsilu",
                    "gemm m=21 n=40 k=16 d=f32 epilogue=dsigmoid+dtanh+dleaky_relu:0.1+dclamp:-1:2",
                    "gemm m=9 n=33 k=40 epilogue=bias_n:f32+clamp:-1:0.5+residual+dgelu_tanh",
                    "gemm m=140 n=136 k=16 d=f32 epilogue=scale_block+sum_m+sum_n+amax+relu",
                    "gemm m=20 n=64 k=40 batch=2 epilogue=bias_n+swiglu+residual+amax_m+amax_n",
                    "gemm m=20 n=40 k=40 a=f16 epilogue=silu+toward_zero", "gemm m=21 n=40 k=20 a=tf32 bias=n",
                    "gemm m=21 n=40 k=48 a=s8 b=u8", "gemm m=21 n=40 k=48 a=u8 d=f16 alpha=0.001 bias=m",
                    "gemm m=5 n=6 k=80 a=u8 sum=saturate",
                    "gemm m=20 n=40 k=40 a=f16 alpha=20000 epilogue=aux:f16+scale:0.001",
                    "gemm m=20 n=64 k=40 bias=n epilogue=bias_n+swiglu:halves+scale_n+residual+amax_n",
                    "conv n=2 h=5 w=6 c=8 k=24 r=3 s=3 pad=1 groups=2 beta=0.5 bias=k "
                    "epilogue=scale_k+geglu+bias_k+residual+sum_k+amax_k",
                    "conv n=2 h=5 w=6 c=8 k=24 r=3 s=3 pad=1 groups=2 bias=k "
                    "epilogue=scale_k+amax_k+geglu:halves+bias_k+residual"));

// Problems that only the host's epilogue knows, with sums of the device.
struct Summed {
  const char *target, *problem;
};
void PrintTo(const Summed& summed, std::ostream* out) { *out << summed.target << " " << summed.problem; }
class SummedOnDevice : public testing::TestWithParam<Summed> {};

TEST_P(SummedOnDevice, AgreesWithTheHost) {
  const auto nvrtc = Nvrtc::Open(tools::Settings::FromEnvironment().library_directories);
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  const auto engine = Engine::Open({.device = "emulator", .target = GetParam().target, .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  Case c(*engine, GetParam().problem);
  ASSERT_TRUE(NeedsHost(c.problem));
  const auto plan = engine->MakePlan(c.problem);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_TRUE(plan->Execute(c.stream.handle(), c.device.arguments()).has_value());
  HostTensor d = HostTensor::Poisoned(Stored(c.problem, OperandRole::kD));
  ASSERT_TRUE(c.device.Download(c.stream, d, c.host).has_value());
  const auto sums = DeviceSums::Compile(*nvrtc, engine->parts().device, c.problem, CodeForm::kPtx);
  ASSERT_TRUE(sums.has_value()) << sums.error().message;
  const auto compare = [&] {
    return CompareSums(c.problem, c.host, d, {},
                       [&](const Strip& strip) { return sums->Compute(c.stream, c.device.arguments(), strip); });
  };
  const Comparison on_host = CompareAll(c.problem, c.host, d);
  const auto on_device = compare();
  ASSERT_TRUE(on_device.has_value()) << on_device.error().message;
  EXPECT_EQ(on_device->reference, "nvrtc sums, cpu");
  EXPECT_EQ(on_device->compared, on_host.compared);
  EXPECT_NEAR(on_device->reference_squares, on_host.reference_squares, 1e-12 * on_host.reference_squares);
  EXPECT_EQ(FailureOf(*on_device, c.problem, engine->parts().target), std::nullopt);
  if (c.host.block_scale_d.bytes.empty()) return;
  c.host.block_scale_d.bytes[0] ^= std::byte{0x10};
  const auto wrong = compare();
  ASSERT_TRUE(wrong.has_value()) << wrong.error().message;
  EXPECT_EQ(wrong->factors_outside, 1);
  EXPECT_EQ(wrong->first_factor, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, SummedOnDevice,
    testing::Values(Summed{"sm_90a", "gemm m=70 n=96 k=40 d=e4m3 d_scale=mx"},
                    Summed{"sm_90a", "gemm m=66 n=192 k=40 batch=2 d=e5m2 d_scale=mx epilogue=swiglu:halves+amax_n"},
                    Summed{"sm_90a", "gemm m=21 n=40 k=48 epilogue=scale_m:f32+rint"},
                    Summed{"sm_90a", "grouped_gemm groups=3 m=40 n=48 k=40 bias=n"},
                    Summed{"sm_90a", "grouped_gemm groups=4 m=40 n=48 k=140 layout=k d=f32 beta=1 bias=n"},
                    Summed{"sm_100a", "grouped_gemm groups=3 m=200 n=40 k=64 a=e4m3 scale=mx"},
                    Summed{"sm_100a", "gemm m=70 n=96 k=96 a=e2m1 scale=nv d=e2m1 d_scale=nv"},
                    Summed{"sm_100a", "gemm m=70 n=96 k=128 a=e3m2 scale=mx d=e2m1 d_scale=mx epilogue=relu"}));

class ConvDeviceReference : public testing::TestWithParam<const char*> {};

// Any y will do: both references say the same about numbers that no kernel made.
TEST_P(ConvDeviceReference, AgreesWithTheHost) {
  const auto nvrtc = Nvrtc::Open(tools::Settings::FromEnvironment().library_directories);
  if (!nvrtc) GTEST_SKIP() << nvrtc.error().message;
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const Case c(*engine, GetParam());
  HostTensor y = HostTensor::Random(Stored(c.problem, OperandRole::kD), OperandRole::kD, 2);
  const int64_t never_written = y.shape.Elements() / 2;
  const HostTensor poison = HostTensor::Poisoned(y.shape);
  StoreElement(y.bytes.data(), y.shape.type,
               y.shape.RowStart(never_written / y.shape.Inner()) + never_written % y.shape.Inner(), poison.At(0, 0));
  const auto buffer = device::DeviceBuffer::Allocate(engine->parts().device.context(), y.bytes.size());
  ASSERT_TRUE(buffer.has_value());
  ASSERT_TRUE(buffer->CopyFromHost(c.stream, y.bytes.data(), y.bytes.size()).has_value());
  auto roles = runtime::RolesOf(c.problem, c.device.arguments());
  ASSERT_TRUE(roles.has_value()) << roles.error().message;
  roles->d = reinterpret_cast<void*>(buffer->pointer());
  const auto on_device = CompareOnDevice(*nvrtc, engine->parts().device, c.stream, c.problem,
                                         runtime::ArgumentsOf(c.problem, *roles), CodeForm::kPtx);
  ASSERT_TRUE(on_device.has_value()) << on_device.error().message;
  EXPECT_EQ(on_device->first_not_finite, never_written);
  ExpectAlike(*on_device, CompareAll(c.problem, c.host, y));
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvDeviceReference,
    testing::Values("conv n=2 h=7 w=9 c=3 k=5 r=3 s=3 pad=1:2,0:1 stride=2,1 dilation=1,2 y=bf16 beta=0.5 bias=k",
                    "conv n=1 d=2 h=5 w=6 c=8 k=6 t=2 r=2 s=3 pad=1 groups=2 x=f16 y=f32 alpha=-2 x_pixel=9 y_pixel=7 "
                    "w_tap=5",
                    "conv_dgrad n=2 h=7 w=9 c=6 k=5 r=3 s=3 pad=1:2,0:1 stride=2,1 dilation=1,2 x=bf16 beta=0.5",
                    "conv_dgrad n=1 d=2 h=5 w=6 c=8 k=6 t=2 r=2 s=3 pad=1 groups=2 y=f16 x=f32 alpha=-2 x_pixel=9 "
                    "y_pixel=7 w_tap=5",
                    "conv_wgrad n=2 h=7 w=9 c=6 k=5 r=3 s=3 pad=1:2,0:1 stride=2,1 dilation=1,2 w=bf16 beta=0.5",
                    "conv_wgrad n=1 d=2 h=5 w=6 c=8 k=6 t=2 r=2 s=3 pad=1 groups=2 y=f16 w=f32 alpha=-2 x_pixel=9 "
                    "y_pixel=7 w_tap=5"));

TEST(GpuTiming, TimesEveryContenderOnEveryCall) {
  const auto engine = Engine::Open({.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const Case c(*engine, "gemm m=16 n=16 k=16");
  const auto plan = engine->MakePlan(c.problem);
  int calls[2] = {};
  std::vector<const void*> inputs;
  const auto contender = [&](int index) {
    return [&, index](const Arguments& arguments) {
      ++calls[index];
      inputs.push_back(std::get<GemmArguments>(arguments).a);
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
}  // namespace laneshift::measure
