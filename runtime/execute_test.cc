// What Execute tells of pointers that it cannot use, and of kernels that fail.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "device/buffer.h"
#include "device/stream.h"
#include "emulator/driver/driver.h"
#include "laneshift/engine.h"
#include "runtime/engine_parts.h"
#include "runtime/open_device.h"

namespace laneshift {
namespace {

constexpr const char* kSmallProblem = "gemm m=32 n=32 k=32 a=bf16 d=f32";
constexpr size_t kOperandBytes = 32 * 32 * 2;

// Whether the driver claims to have memory everywhere.
std::atomic<bool> g_claims_all = false;

// An engine on the emulator, whose driver can be made to claim that.
Engine OpenClaiming() {
  const EngineOptions options{.device = "emulator", .target = "sm_90a", .store_directory = ":memory:"};
  auto opened = runtime::OpenSelectedDevice(options);
  EXPECT_TRUE(opened) << opened.error().message;
  auto& api = const_cast<device::DriverApi&>(*opened->api);
  api.PointerGetAttributes = [](unsigned count, device::CuPointerAttribute* attributes, void** values,
                                device::CuDevicePtr pointer) {
    if (!g_claims_all) return emulator::Driver().PointerGetAttributes(count, attributes, values, pointer);
    *static_cast<unsigned*>(values[0]) = device::kCuMemoryDevice;
    *static_cast<device::CuDevicePtr*>(values[1]) = pointer;
    *static_cast<size_t*>(values[2]) = size_t{1} << 40;
    return device::kCuSuccess;
  };
  return Engine::Parts::OpenOn(options, std::move(*opened));
}

class Execute : public testing::Test {
 protected:
  Execute() { g_claims_all = false; }

  device::DeviceBuffer Memory(size_t bytes) {
    return *device::DeviceBuffer::Allocate(engine.parts().device.context(), bytes);
  }
  static void* At(const device::DeviceBuffer& buffer, size_t offset = 0) {
    return reinterpret_cast<void*>(buffer.pointer() + offset);
  }
  std::string Refusal(const GemmArguments& arguments, const Plan& of, void* workspace = nullptr) {
    const Status status = of.Execute(nullptr, arguments, workspace);
    if (status) return "";
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    return status.error().message;
  }
  static bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  Engine engine = OpenClaiming();
  const Problem problem = *ParseProblem(kSmallProblem);
  const Plan plan = *engine.MakePlan(problem);
  const device::DeviceBuffer a = Memory(kOperandBytes), b = Memory(kOperandBytes), d = Memory(2 * kOperandBytes);
  const GemmArguments good{.a = At(a), .b = At(b), .d = At(d)};
};

TEST_F(Execute, WhatIsNoDeviceAddressIsRefusedByName) {
  EXPECT_EQ(Refusal(good, plan), "");
  alignas(16) static char on_the_host[kOperandBytes];
  GemmArguments bad = good;
  bad.b = on_the_host;
  std::string refusal = Refusal(bad, plan);
  EXPECT_TRUE(Has(refusal, "pointer b (0x") && Has(refusal, "is no address of") && Has(refusal, "cuMemAlloc"))
      << refusal;
  bad = good;
  bad.d = reinterpret_cast<void*>(uintptr_t{0xdead0000});
  refusal = Refusal(bad, plan);
  EXPECT_TRUE(Has(refusal, "pointer d (0xdead0000) is no address of")) << refusal;
  // Run, too.
  const Status run = engine.Run(problem, nullptr, bad);
  ASSERT_FALSE(run);
  EXPECT_TRUE(Has(run.error().message, "pointer d (0xdead0000)")) << run.error().message;
  EXPECT_EQ(Refusal(good, plan), "");
}

TEST_F(Execute, AnOperandThatDoesNotFitIsRefusedWithItsBytes) {
  GemmArguments bad = good;
  bad.a = At(a, 16);
  const std::string refusal = Refusal(bad, plan);
  EXPECT_TRUE(Has(refusal, "has 2032 bytes up to the end of its allocation, a takes 2048")) << refusal;
  // D is f32.
  bad = good;
  bad.d = At(a);
  EXPECT_TRUE(Has(Refusal(bad, plan), "pointer d (")) << Refusal(bad, plan);
}

TEST_F(Execute, OperandsOfTheEpilogueAndTheWorkspaceAreChecked) {
  const Plan fused = *engine.MakePlan(*ParseProblem("gemm m=32 n=32 k=32 a=bf16 d=f32 epilogue=bias_n"));
  GemmArguments bad = good;
  bad.epilogue[0] = &bad;
  EXPECT_TRUE(Has(Refusal(bad, fused), "pointer epilogue[0] (bias_n)")) << Refusal(bad, fused);
  const Plan cut = *engine.MakePlan(*ParseProblem("gemm m=32 n=32 k=512 a=bf16 d=f32"), *ParseSchedule("split_k=2"));
  ASSERT_GT(cut.workspace_bytes(), 16u);
  const device::DeviceBuffer long_a = Memory(64 << 10), long_b = Memory(64 << 10), little = Memory(16);
  const GemmArguments longer{.a = At(long_a), .b = At(long_b), .d = At(d)};
  EXPECT_TRUE(Has(Refusal(longer, cut, At(little)), "pointer workspace (")) << Refusal(longer, cut, At(little));
}

TEST_F(Execute, AFaultIsToldByItsCallAndTheEngineGoesOn) {
  (void)engine.TakeReport();
  GemmArguments bad = good;
  bad.d = reinterpret_cast<void*>(uintptr_t{0xdead0000});
  g_claims_all = true;
  const Status failed = plan.Execute(nullptr, bad);
  g_claims_all = false;
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kDriver);
  // What, and where: the kernel and the line of its PTX.
  EXPECT_TRUE(Has(failed.error().message, "CUDA_ERROR_ILLEGAL_ADDRESS")) << failed.error().message;
  EXPECT_TRUE(Has(failed.error().message, "line ")) << failed.error().message;
  EXPECT_FALSE(Has(failed.error().message, "no more")) << failed.error().message;
  const auto report = engine.TakeReport();
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->Clean());
  EXPECT_EQ(report->launches, 1u);
  ASSERT_EQ(report->faults.size(), 1u);
  // The fault of whichever CTA stored first: any address of D, which has 0x1000 bytes.
  EXPECT_TRUE(Has(report->faults[0], "0xdead0")) << report->faults[0];
  // Nothing is left of it.
  EXPECT_TRUE(engine.TakeReport()->Clean());
  const Status next = plan.Execute(nullptr, good);
  EXPECT_TRUE(next) << next.error().message;
  const auto stream = *device::Stream::Create(engine.parts().device.context());
  EXPECT_TRUE(stream.Synchronize());
  EXPECT_TRUE(engine.TakeReport()->faults.empty());
}

}  // namespace
}  // namespace laneshift
