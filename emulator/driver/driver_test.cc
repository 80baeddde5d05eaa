// The driver table: what it refuses, and graphs.

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

constexpr const char* kIncrement =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry add_one(.param .u64 p) { .reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1, [p]; mov.u32 %r1, "
    "%tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r2, [%rd3]; add.u32 %r2, %r2, 1; "
    "st.global.u32 [%rd3], %r2; ret; }\n";

TEST(DriverTable, EveryRowIsFilled) {
  const device::DriverApi api = Driver();
#define CU(member, symbol, parameters) EXPECT_NE(api.member, nullptr) << #symbol;
#include "device/driver_api.def"
}

TEST(DriverTable, RefusesWhatTheDeviceCannotRun) {
  Options options;
  options.profile = Profile::kH200;
  TestDevice device(options);
  EXPECT_EQ(device.Load(".version 9.0\n.target sm_100a\n", "k"), nullptr);
  EXPECT_EQ(device.load_result, device::kCuErrorNoBinaryForGpu);
  EXPECT_EQ(device.log, "the module is for sm_100a, this device is sm_90a");
  EXPECT_EQ(device.Load("\x7f"
                        "ELF",
                        "k"),
            nullptr);
  EXPECT_EQ(device.load_result, device::kCuErrorInvalidImage);
  EXPECT_EQ(device.Load(".version 9.0\n.target sm_90a\n.entry k() { flub; }", "k"), nullptr);
  EXPECT_EQ(device.load_result, device::kCuErrorInvalidPtx);
  EXPECT_EQ(device.log, "3:14: unknown instruction 'flub'");
}

TEST(DriverTable, TakesPtxUpToThatOfCuda134) {
  TestDevice device({});
  const auto module = [](const std::string& version) {
    return ".version " + version + "\n.target sm_100a\n.entry k() { ret; }";
  };
  EXPECT_NE(device.Load(module("9.4"), "k"), nullptr) << device.log;
  for (const std::string version : {"9.5", "10.0", "8.12"}) {
    EXPECT_EQ(device.Load(module(version), "k"), nullptr);
    EXPECT_EQ(device.load_result, device::kCuErrorUnsupportedPtxVersion);
    EXPECT_EQ(device.log, "PTX version " + version + " is not known; 1.0 to 9.4 are");
  }
}

TEST(DriverTable, CapturedGraphRunsWhenLaunched) {
  TestDevice device({});
  const device::CuFunction kernel = device.Load(kIncrement, "add_one");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(32, 5));
  device::CuStream stream = nullptr;
  ASSERT_EQ(device.api.StreamCreate(&stream, 0), device::kCuSuccess);
  ASSERT_EQ(device.api.StreamBeginCapture(stream, device::kCuCaptureThreadLocal), device::kCuSuccess);
  void* parameters[] = {&data};
  const device::CuLaunchConfig config{1, 1, 1, 32, 1, 1, 0, stream, nullptr, 0};
  ASSERT_EQ(device.api.LaunchKernelEx(&config, kernel, parameters, nullptr), device::kCuSuccess);
  device::CuGraph graph = nullptr;
  ASSERT_EQ(device.api.StreamEndCapture(stream, &graph), device::kCuSuccess);
  EXPECT_EQ(device.Download<uint32_t>(data, 1)[0], 5u);
  device::CuGraphExec exec = nullptr;
  ASSERT_EQ(device.api.GraphInstantiate(&exec, graph, 0), device::kCuSuccess);
  for (int launch = 0; launch < 2; ++launch) ASSERT_EQ(device.api.GraphLaunch(exec, stream), device::kCuSuccess);
  EXPECT_EQ(device.Download<uint32_t>(data, 32), std::vector<uint32_t>(32, 7));
  EXPECT_EQ(TakeReport().launches, 2u);
}

TEST(DriverTable, UnwrittenGlobalMemoryIsReportedOnce) {
  TestDevice device({});
  const device::CuFunction kernel = device.Load(kIncrement, "add_one");
  device::CuDevicePtr data = device.Allocate(128);
  EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 32, 0, {&data}), device::kCuSuccess);
  const Report report = TakeReport();
  ASSERT_EQ(report.hazards.size(), 1u);
  EXPECT_EQ(report.hazards[0].kind, HazardKind::kUninitialisedGlobal);
  EXPECT_EQ(report.hazards[0].count, 32u);
}

TEST(DriverTable, DynamicSharedMemoryBeyondTheAttributeIsRefused) {
  TestDevice device({});
  const device::CuFunction kernel = device.Load(kIncrement, "add_one");
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(32, 5));
  void* parameters[] = {&data};
  const device::CuLaunchConfig config{1, 1, 1, 32, 1, 1, 49 * 1024, nullptr, nullptr, 0};
  EXPECT_EQ(device.api.LaunchKernelEx(&config, kernel, parameters, nullptr), device::kCuErrorInvalidValue);
  EXPECT_EQ(device.api.FuncSetAttribute(kernel, device::kCuFuncMaxDynamicSharedSizeBytes, 228 * 1024),
            device::kCuErrorInvalidValue);
}

}  // namespace
}  // namespace laneshift::emulator
