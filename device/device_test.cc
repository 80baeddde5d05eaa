#include "device/device.h"

#include <gtest/gtest.h>

#include <array>

#include "base/log.h"
#include "device/buffer.h"
#include "device/driver_error.h"
#include "device/event.h"
#include "device/fake_driver.h"
#include "device/launch.h"
#include "device/module.h"

namespace laneshift::device {
namespace {

constexpr char kPtx[] = "//\n// comment\n.version 9.2\n.target sm_100a, texmode_independent\n.address_size 64\n";

class DeviceTest : public testing::Test {
 protected:
  Device Open() {
    Result<Device> device = OpenDevice(api_, 0);
    EXPECT_TRUE(device) << device.error().message;
    return std::move(*device);
  }
  FakeDriver& fake_ = FakeDriver::Instance();
  DriverApi api_ = FakeDriver::Reset();
};

// Every field is in one of the two lists, so that a new one must be thought about.
TEST(DeviceFacts, TheKeyHasWhatMakesAChipAndNothingElse) {
  const DeviceFacts facts{.ordinal = 1,
                          .name = "NVIDIA H200",
                          .compute_major = 9,
                          .driver_version = 13000,
                          .sm_count = 132,
                          .clock_khz = 1980000,
                          .memory_clock_khz = 3201000,
                          .memory_bus_bits = 6144,
                          .memory_bytes = 1};
  EXPECT_EQ(facts.Key(), "NVIDIA H200/sm_90/132sm/1980MHz/6144bit/3201MHz");
  const auto with = [&](auto field, auto value) {
    DeviceFacts changed = facts;
    changed.*field = value;
    return changed.Key();
  };
  EXPECT_NE(with(&DeviceFacts::name, std::string("NVIDIA H200 MIG 1g.18gb")), facts.Key());
  for (int DeviceFacts::*field :
       {&DeviceFacts::compute_major, &DeviceFacts::compute_minor, &DeviceFacts::sm_count, &DeviceFacts::clock_khz,
        &DeviceFacts::memory_clock_khz, &DeviceFacts::memory_bus_bits}) {
    EXPECT_NE(with(field, 7777777), facts.Key());
  }
  // Another place, another driver, and what follows from the chip.
  for (int DeviceFacts::*field :
       {&DeviceFacts::ordinal, &DeviceFacts::driver_version, &DeviceFacts::warp_size, &DeviceFacts::max_threads_per_cta,
        &DeviceFacts::max_threads_per_sm, &DeviceFacts::registers_per_cta, &DeviceFacts::smem_per_cta_bytes,
        &DeviceFacts::smem_per_cta_optin_bytes, &DeviceFacts::smem_per_sm_bytes,
        &DeviceFacts::smem_reserved_per_cta_bytes, &DeviceFacts::l2_bytes}) {
    EXPECT_EQ(with(field, 7777777), facts.Key());
  }
  EXPECT_EQ(with(&DeviceFacts::memory_bytes, size_t{7}), facts.Key())
      << "drivers keep different amounts for themselves";
  EXPECT_EQ(with(&DeviceFacts::clusters, true), facts.Key());
  EXPECT_EQ(with(&DeviceFacts::tensor_maps, true), facts.Key());
}

TEST_F(DeviceTest, FactsComeFromTheDriver) {
  Device device = Open();
  EXPECT_EQ(device.facts().ComputeName(), "sm_90");
  EXPECT_EQ(device.facts().sm_count, 132);
  EXPECT_EQ(device.facts().smem_per_cta_optin_bytes, 232448);
  EXPECT_TRUE(device.facts().clusters);
  EXPECT_EQ(device.facts().Key(), "Fake H200/sm_90/132sm/0MHz/0bit/0MHz");
  EXPECT_EQ(device.facts().Driver(), "13.0");
}

TEST_F(DeviceTest, AMissingDeviceIsNamed) {
  Result<Device> device = OpenDevice(api_, 3);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(device.error().message, "no device 3: there is 1 device, counted from 0");
}

TEST_F(DeviceTest, ThePrimaryContextIsReleasedOnceWhereverTheDeviceMoved) {
  {
    Device first = Open();
    Device second = std::move(first);
    first = std::move(second);
  }
  EXPECT_EQ(fake_.Count("cuDevicePrimaryCtxRetain"), 1u);
  EXPECT_EQ(fake_.Count("cuDevicePrimaryCtxRelease_v2"), 1u);
}

TEST_F(DeviceTest, EveryFailingCallOfOpeningIsReportedAndNothingLeaks) {
  Open();
  int calls = 0;
  for (const std::string& call : fake_.calls) calls += call != "cuDevicePrimaryCtxRelease_v2";
  for (int n = 1; n <= calls; ++n) {
    api_ = FakeDriver::Reset();
    fake_.fail_call = n;
    Result<Device> device = OpenDevice(api_, 0);
    ASSERT_FALSE(device) << "call " << n;
    EXPECT_NE(device.error().message.find("CUDA_ERROR_FAKED (999)"), std::string::npos) << device.error().message;
    EXPECT_FALSE(fake_.Called("cuDevicePrimaryCtxRelease_v2"));
  }
}

TEST_F(DeviceTest, ActivateRestoresThePreviousContextAndSkipsWhatIsCurrent) {
  Device device = Open();
  auto other = FakeHandle<CuContext>(0x999);
  fake_.current = other;
  {
    auto outer = device.Activate();
    ASSERT_TRUE(outer);
    EXPECT_EQ(fake_.current, device.context().handle);
    size_t sets = fake_.Count("cuCtxSetCurrent");
    auto inner = device.Activate();
    EXPECT_EQ(fake_.Count("cuCtxSetCurrent"), sets);
  }
  EXPECT_EQ(fake_.current, other);
}

TEST_F(DeviceTest, ABufferIsFreedOnceAndInItsContext) {
  Device device = Open();
  {
    auto buffer = DeviceBuffer::Allocate(device.context(), 1024);
    ASSERT_TRUE(buffer);
    DeviceBuffer moved = std::move(*buffer);
    EXPECT_EQ(moved.size(), 1024u);
  }
  EXPECT_EQ(fake_.Count("cuMemFree_v2"), 1u);
  auto empty = DeviceBuffer::Allocate(device.context(), 0);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->pointer(), 0u);
  EXPECT_EQ(fake_.Count("cuMemAlloc_v2"), 1u);
}

TEST_F(DeviceTest, OutOfMemoryNamesTheSize) {
  Device device = Open();
  fake_.failures["cuMemAlloc_v2"] = kCuErrorOutOfMemory;
  auto buffer = DeviceBuffer::Allocate(device.context(), 4096);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(buffer.error().message, "cuMemAlloc of 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): as the test asked");
}

TEST_F(DeviceTest, CopiesAreCheckedAgainstTheSize) {
  Device device = Open();
  auto buffer = DeviceBuffer::Allocate(device.context(), 16);
  Stream stream = Stream::Borrow(device.context(), nullptr);
  char host[32] = {};
  EXPECT_TRUE(buffer->CopyFromHost(stream, host, 8, 8));
  for (auto [bytes, offset] : {std::pair<size_t, size_t>{17, 0}, {8, 9}, {1, SIZE_MAX}, {SIZE_MAX, 8}}) {
    auto status = buffer->CopyToHost(stream, host, bytes, offset);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(fake_.Called("cuMemcpyDtoHAsync_v2"));
  EXPECT_TRUE(buffer->FillWords(stream, 1));
}

TEST_F(DeviceTest, OnlyOwnedStreamsAreDestroyed) {
  Device device = Open();
  {
    Stream borrowed = Stream::Borrow(device.context(), FakeHandle<CuStream>(0x1));
    EXPECT_TRUE(borrowed.Synchronize());
  }
  EXPECT_FALSE(fake_.Called("cuStreamDestroy_v2"));
  {
    auto owned = Stream::Create(device.context());
    ASSERT_TRUE(owned);
    auto event = Event::Create(device.context());
    ASSERT_TRUE(event);
    EXPECT_TRUE(event->Record(*owned));
  }
  EXPECT_EQ(fake_.Count("cuStreamDestroy_v2"), 1u);
  EXPECT_EQ(fake_.Count("cuEventDestroy_v2"), 1u);
}

TEST_F(DeviceTest, PtxOfANewerVersionThanTheDriverSaysBoth) {
  Device device = Open();
  fake_.failures["cuModuleLoadDataEx"] = kCuErrorUnsupportedPtxVersion;
  auto module = Module::LoadPtx(device.context(), kPtx);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(
      module.error().message,
      "the driver supports CUDA 13.0 (PTX ISA 9.0) but the kernel needs PTX 9.2: update the driver or pass a cubin "
      "made by ptxas");
}

TEST_F(DeviceTest, TheDriversLogIsInTheError) {
  Device device = Open();
  fake_.failures["cuModuleLoadDataEx"] = kCuErrorInvalidPtx;
  fake_.jit_log = "ptxas application ptx input, line 9; error : Unknown symbol";
  auto module = Module::LoadPtx(device.context(), kPtx);
  ASSERT_FALSE(module);
  EXPECT_NE(module.error().message.find("line 9; error : Unknown symbol"), std::string::npos) << module.error().message;
  fake_.failures["cuModuleLoadDataEx"] = kCuErrorNoBinaryForGpu;
  module = Module::LoadPtx(device.context(), kPtx);
  EXPECT_EQ(module.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(module.error().message.find("cannot run PTX for sm_100a"), std::string::npos) << module.error().message;
}

TEST_F(DeviceTest, ACubinMustBeAnElfFile) {
  Device device = Open();
  auto module = Module::LoadCubin(device.context(), "not a cubin");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(fake_.Called("cuModuleLoadDataEx"));
}

class LaunchTest : public DeviceTest {
 protected:
  Status LaunchWith(LaunchShape shape) {
    std::array<void*, 0> none;
    return Launch(kernel_, shape, Stream::Borrow(device_.context(), nullptr), none);
  }
  std::string Refusal(LaunchShape shape) {
    Status status = LaunchWith(shape);
    return status ? "launched" : status.error().message;
  }
  Device device_ = Open();
  Module module_ = std::move(*Module::LoadPtx(device_.context(), kPtx));
  Kernel kernel_ = std::move(*module_.GetKernel("gemm"));
};

TEST_F(LaunchTest, KernelFactsAndSharedMemoryLimit) {
  EXPECT_EQ(kernel_.facts().registers_per_thread, 168);
  EXPECT_EQ(kernel_.facts().static_smem_bytes, 1024);
  EXPECT_TRUE(kernel_.AllowDynamicSmem(231424));
  EXPECT_EQ(kernel_.max_dynamic_smem_bytes(), 231424);
  Status status = kernel_.AllowDynamicSmem(231425);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(status.error().message.find("pass the device's 232448 by 1"), std::string::npos) << status.error().message;
}

TEST_F(LaunchTest, AttributesAreSetOnlyWhereAsked) {
  ASSERT_TRUE(LaunchWith({.grid = {4, 2, 1}, .block = {128}, .cluster = {}}));
  EXPECT_EQ(fake_.launched.attribute_count, 0u);
  EXPECT_EQ(fake_.launched.grid_y, 2u);
  ASSERT_TRUE(LaunchWith({.grid = {4, 2, 1},
                          .block = {128},
                          .cluster = {2, 1, 1},
                          .dynamic_smem_bytes = 1024,
                          .overlap = GridOverlap::kProgrammatic}));
  ASSERT_EQ(fake_.attributes.size(), 2u);
  EXPECT_EQ(fake_.attributes[0].id, kCuLaunchClusterDimension);
  EXPECT_EQ(fake_.attributes[0].value.cluster_dim.x, 2u);
  EXPECT_EQ(fake_.attributes[1].id, kCuLaunchProgrammaticStreamSerialization);
  EXPECT_EQ(fake_.attributes[1].value.programmatic_stream_serialization, 1);
  EXPECT_EQ(fake_.launched.shared_mem_bytes, 1024u);
}

TEST_F(LaunchTest, ActiveClustersAreAskedForAndNeverNone) {
  const LaunchShape shape{.grid = {2}, .block = {128}, .cluster = {2}};
  EXPECT_EQ(*ActiveClusters(kernel_, shape), 66);
  fake_.active_clusters = 0;
  EXPECT_EQ(ActiveClusters(kernel_, shape).error().code, ErrorCode::kResourceExhausted);
  fake_.failures["cuOccupancyMaxActiveClusters"] = kCuErrorUnknown;
  EXPECT_EQ(ActiveClusters(kernel_, shape).error().code, ErrorCode::kDriver);
}

TEST_F(LaunchTest, ImpossibleShapesAreNamedBeforeTheDriverIsAsked) {
  EXPECT_NE(Refusal({.grid = {0, 1, 1}}).find("grid 0x1x1"), std::string::npos);
  EXPECT_NE(Refusal({.grid = {1, 65536, 1}}).find("65535"), std::string::npos);
  EXPECT_NE(Refusal({.grid = {1}, .block = {512}}).find("512 threads; this kernel allows 1 to 384"), std::string::npos);
  EXPECT_NE(Refusal({.grid = {3}, .block = {32}, .cluster = {2}}).find("does not divide"), std::string::npos);
  EXPECT_NE(Refusal({.grid = {1}, .block = {32}, .dynamic_smem_bytes = 48129}).find("AllowDynamicSmem"),
            std::string::npos);
  EXPECT_FALSE(fake_.Called("cuLaunchKernelEx"));
}

TEST(LoadCudaDriver, FindsADriverOrSaysWhatToDo) {
  Result<DriverApi> driver = LoadCudaDriver();
  if (driver) {
    int count = 0;
    EXPECT_EQ(driver->DeviceGetCount(&count), kCuSuccess);
    return;
  }
  EXPECT_TRUE(driver.error().code == ErrorCode::kNotFound || driver.error().code == ErrorCode::kUnsupported ||
              driver.error().code == ErrorCode::kDriver);
  if (driver.error().message.find("no CUDA driver") == 0) {
    EXPECT_NE(driver.error().message.find("use --device emulator"), std::string::npos);
  }
}

TEST(DriverError, SaysThatAFaultStays) {
  const DriverApi api = FakeDriver::Reset();
  FakeDriver& fake = FakeDriver::Instance();
  // Here the next call works.
  EXPECT_EQ(DriverError(api, kCuErrorIllegalAddress, "cuLaunchKernelEx").message.find("no more"), std::string::npos);
  fake.failures["cuMemGetInfo_v2"] = kCuErrorIllegalAddress;
  EXPECT_NE(DriverError(api, kCuErrorIllegalAddress, "cuLaunchKernelEx").message.find("no more"), std::string::npos);
  EXPECT_EQ(DriverError(api, kCuErrorInvalidValue, "cuLaunchKernelEx").message.find("no more"), std::string::npos);
}

TEST(Module, ACubinThatTheDriverDoesNotTakeIsUnsupported) {
  const DriverApi api = FakeDriver::Reset();
  FakeDriver::Instance().failures["cuModuleLoadDataEx"] = kCuErrorInvalidImage;
  const auto module = Module::LoadCubin({&api, FakeHandle<CuContext>(0x100)}, "\177ELF" + std::string(100, '\0'));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kUnsupported) << module.error().message;
}

}  // namespace
}  // namespace laneshift::device
