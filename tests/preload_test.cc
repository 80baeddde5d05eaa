// A program of the driver API, run with the library preloaded as libcuda.so.1; nothing of the emulator is linked in.
//
// Each case is typical of programs: memory, modules, launches, streams, events, graphs, tensor maps, occupancy.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "emulator/cudart/runtime_functions.h"
#include "emulator/driver/driver_functions.h"

namespace laneshift::tests {
namespace {

using namespace device;            // NOLINT: a program of the driver API speaks its language
using namespace emulator::driver;  // NOLINT

#define OK(call) ASSERT_EQ(call, kCuSuccess) << #call

constexpr const char* kKernels = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 step = 3;
.visible .entry add_step(.param .u64 p, .param .u32 n) {
  .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1; @%p ret;
  mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3]; ld.global.u32 %r4, [step]; add.u32 %r3, %r3, %r4; st.global.u32 [%rd3], %r3; ret;
}
.visible .entry copy_box(.param .align 64 .b8 map[128], .param .u64 p) {
  .reg .b64 %rd<6>; .reg .b32 %r<8>; .reg .pred %p<2>;
  .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
  mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, %tid.x; setp.ne.u32 %p1, %r3, 0;
  @%p1 bra ready;
  mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r2], 256;
  mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2; mov.u32 %r4, 8; mov.u32 %r5, 1;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r4, %r5}], [%r2];
ready:
  bar.sync 0;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra wait;
  shl.b32 %r6, %r3, 2; add.u32 %r1, %r1, %r6; ld.shared.u32 %r7, [%r1];
  ld.param.u64 %rd3, [p]; mul.wide.u32 %rd4, %r3, 4; add.s64 %rd5, %rd3, %rd4; st.global.u32 [%rd5], %r7; ret;
}
)";

class Preload : public testing::Test {
 protected:
  void SetUp() override {
    CuDevice device = -1;
    OK(Init(0));
    OK(DeviceGet(&device, 0));
    OK(CtxCreate(&context, 0, device));
    OK(ModuleLoadData(&module, kKernels));
    OK(ModuleGetFunction(&add_step, module, "add_step"));
    OK(MemAlloc(&numbers, 1024 * 4));
    OK(MemsetD32(numbers, 0, 1024));
  }
  void TearDown() override { EXPECT_EQ(CtxDestroy(context), kCuSuccess); }

  std::vector<uint32_t> Numbers() {
    std::vector<uint32_t> values(1024);
    EXPECT_EQ(MemcpyDtoH(values.data(), numbers, values.size() * 4), kCuSuccess);
    return values;
  }
  // What `times` runs of add_step over the first 1000 numbers leave.
  static std::vector<uint32_t> After(uint32_t times, uint32_t step = 3) {
    std::vector<uint32_t> values(1024, 0);
    std::fill_n(values.begin(), 1000, times * step);
    return values;
  }
  CuResult Launch(CuStream stream) {
    std::array<void*, 2> arguments = {&numbers, &count};
    return LaunchKernel(add_step, 4, 1, 1, 256, 1, 1, 0, stream, arguments.data(), nullptr);
  }

  CuContext context = nullptr;
  CuModule module = nullptr;
  CuFunction add_step = nullptr;
  CuDevicePtr numbers = 0;
  uint32_t count = 1000;
};

TEST_F(Preload, LaunchesWithParametersOfBothForms) {
  OK(Launch(nullptr));
  struct {
    CuDevicePtr p;
    uint32_t n;
  } block = {numbers, count};
  size_t bytes = 12;
  std::array<void*, 5> extra = {reinterpret_cast<void*>(1), &block, reinterpret_cast<void*>(2), &bytes, nullptr};
  OK(LaunchKernel(add_step, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra.data()));
  OK(CtxSynchronize());
  EXPECT_EQ(Numbers(), After(2));
}

TEST_F(Preload, VariablesAreFoundAndWritten) {
  CuDevicePtr step = 0;
  size_t bytes = 0;
  OK(ModuleGetGlobal(&step, &bytes, module, "step"));
  EXPECT_EQ(bytes, 4u);
  const uint32_t seven = 7;
  OK(MemcpyHtoD(step, &seven, 4));
  OK(Launch(nullptr));
  EXPECT_EQ(Numbers(), After(1, 7));
  EXPECT_EQ(ModuleGetGlobal(&step, &bytes, module, "stride"), kCuErrorNotFound);
}

TEST_F(Preload, LibrariesGiveKernelsThatAreFunctions) {
  CuLibrary library = nullptr;
  CuFunction kernel = nullptr, same = nullptr;
  const char* name = nullptr;
  unsigned kernels = 0;
  OK(LibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(LibraryGetKernelCount(&kernels, library));
  EXPECT_EQ(kernels, 2u);
  OK(LibraryGetKernel(&kernel, library, "add_step"));
  OK(KernelGetFunction(&same, kernel));
  OK(FuncGetName(&name, same));
  EXPECT_STREQ(name, "add_step");
  size_t offset = 0, size = 0;
  OK(FuncGetParamInfo(same, 1, &offset, &size));
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(FuncGetParamInfo(same, 2, &offset, &size), kCuErrorInvalidValue);
  add_step = same;
  OK(Launch(nullptr));
  EXPECT_EQ(Numbers(), After(1));
  OK(LibraryUnload(library));
  EXPECT_EQ(Launch(nullptr), kCuErrorInvalidHandle);
}

TEST_F(Preload, CaptureAcrossTwoStreamsRunsInOrder) {
  CuStream first = nullptr, second = nullptr;
  CuEvent fork = nullptr, join = nullptr;
  OK(StreamCreate(&first, 1));
  OK(StreamCreate(&second, 1));
  OK(EventCreate(&fork, 0));
  OK(EventCreate(&join, 0));
  OK(StreamBeginCapture(first, kCuCaptureGlobal));
  OK(MemsetD32Async(numbers, 0, 1024, first));
  OK(EventRecord(fork, first));
  OK(StreamWaitEvent(second, fork, 0));
  OK(Launch(second));
  OK(EventRecord(join, second));
  OK(StreamWaitEvent(first, join, 0));
  OK(Launch(first));
  CuGraph graph = nullptr;
  OK(StreamEndCapture(first, &graph));
  size_t nodes = 0;
  OK(GraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 3u);
  EXPECT_EQ(Numbers(), After(0));
  CuGraphExec exec = nullptr;
  OK(GraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 2; ++launch) OK(GraphLaunch(exec, first));
  OK(StreamSynchronize(first));
  EXPECT_EQ(Numbers(), After(2));
}

TEST_F(Preload, GraphsRunByTheirDependencies) {
  CuGraph graph = nullptr;
  OK(GraphCreate(&graph, 0));
  std::array<void*, 2> arguments = {&numbers, &count};
  CuKernelNodeParams launch = {};
  launch.function = add_step;
  launch.grid_x = 4, launch.grid_y = launch.grid_z = 1;
  launch.block_x = 256, launch.block_y = launch.block_z = 1;
  launch.parameters = arguments.data();
  CuGraphNode kernel = nullptr, fill = nullptr;
  // The kernel is added first and runs last.
  OK(GraphAddKernelNode(&kernel, graph, nullptr, 0, &launch));
  const CuMemsetNodeParams clear = {numbers, 0, 0, 4, 1024, 1};
  OK(GraphAddMemsetNode(&fill, graph, nullptr, 0, &clear, context));
  OK(GraphAddDependencies(graph, &fill, &kernel, nullptr, 1));
  CuGraphExec exec = nullptr;
  OK(GraphInstantiate(&exec, graph, 0));
  for (int run = 0; run < 3; ++run) OK(GraphLaunch(exec, nullptr));
  EXPECT_EQ(Numbers(), After(1));
  OK(GraphAddDependencies(graph, &kernel, &fill, nullptr, 1));
  EXPECT_EQ(GraphInstantiate(&exec, graph, 0), kCuErrorInvalidValue) << "a circle";
}

TEST_F(Preload, TensorMapsFeedBulkCopies) {
  std::vector<uint32_t> matrix(32 * 16);
  std::iota(matrix.begin(), matrix.end(), 0);
  CuDevicePtr source = 0;
  OK(MemAlloc(&source, matrix.size() * 4));
  OK(MemcpyHtoD(source, matrix.data(), matrix.size() * 4));
  alignas(64) std::array<uint8_t, 192> host;
  auto* map = reinterpret_cast<CuTensorMap*>(host.data() + 48);  // as cuda-python keeps it
  const uint64_t dims[] = {32, 16}, strides[] = {128};
  const uint32_t box[] = {16, 4}, steps[] = {1, 1};
  OK(TensorMapEncodeTiled(map, kCuTensorMapUint32, 2, reinterpret_cast<void*>(source), dims, strides, box, steps,
                          kCuInterleaveNone, kCuSwizzleNone, kCuL2None, kCuOobZero));
  CuFunction copy_box = nullptr;
  OK(ModuleGetFunction(&copy_box, module, "copy_box"));
  std::array<void*, 2> arguments = {map, &numbers};
  OK(LaunchKernel(copy_box, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments.data(), nullptr));
  OK(CtxSynchronize());
  const std::vector<uint32_t> got = Numbers();
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], (1 + i / 16) * 32 + 8 + i % 16) << i;
}

TEST_F(Preload, OccupancyFollowsSharedMemory) {
  int blocks = 0, clusters = 0;
  OK(OccupancyMaxActiveBlocks(&blocks, add_step, 1024, 0));
  EXPECT_EQ(blocks, 2);
  OK(OccupancyMaxActiveBlocks(&blocks, add_step, 128, 100 << 10));
  EXPECT_EQ(blocks, 2);
  CuLaunchAttribute attribute = {};
  attribute.id = kCuLaunchClusterDimension;
  attribute.value.cluster_dim = {4, 1, 1};
  const CuLaunchConfig config{8, 1, 1, 256, 1, 1, 200 << 10, nullptr, &attribute, 1};
  OK(OccupancyMaxActiveClusters(&clusters, add_step, &config));
  EXPECT_EQ(clusters, 148 / 4);
}

TEST_F(Preload, HostAndManagedMemoryHaveOneAddress) {
  void* host = nullptr;
  OK(MemAllocHost(&host, 4096));
  std::memset(host, 0, 4096);
  CuDevicePtr saved = numbers;
  OK(MemHostGetDevicePointer(&numbers, host, 0));
  OK(Launch(nullptr));
  EXPECT_EQ(static_cast<uint32_t*>(host)[999], 3u);
  EXPECT_EQ(static_cast<uint32_t*>(host)[1000], 0u);
  CuMemoryType type = {};
  OK(PointerGetAttribute(&type, kCuPointerMemoryType, numbers));
  EXPECT_EQ(type, kCuMemoryHost);
  OK(PointerGetAttribute(&type, kCuPointerMemoryType, saved));
  EXPECT_EQ(type, kCuMemoryDevice);
  OK(MemFreeHost(host));
  EXPECT_EQ(MemFreeHost(host), kCuErrorInvalidValue);
}

TEST_F(Preload, CopiesOfTwoDimensionsRespectPitches) {
  std::array<uint8_t, 64> from{}, to{};
  std::iota(from.begin(), from.end(), uint8_t{0});
  CuMemcpy2D copy = {};
  copy.from_type = kCuMemoryHost, copy.from_host = from.data(), copy.from_pitch = 16, copy.from_x = 2;
  copy.to_type = kCuMemoryDevice, copy.to_device = numbers, copy.to_pitch = 32, copy.to_y = 1;
  copy.width = 5, copy.height = 3;
  OK(Memcpy2D(&copy));
  OK(MemcpyDtoH(to.data(), numbers + 32 + 64, 8));
  EXPECT_EQ(to[0], 34);
  EXPECT_EQ(to[4], 38);
  EXPECT_EQ(to[5], 0);
  copy.to_device = numbers + 4096 - 80;
  EXPECT_EQ(Memcpy2D(&copy), kCuErrorInvalidValue) << "the last row lies outside";
}

TEST_F(Preload, FunctionsAreFoundByNameAndVersion) {
  void* function = nullptr;
  CuProcAddressStatus status = {};
  OK(GetProcAddress("cuMemAlloc", &function, 13000, 0, &status));
  EXPECT_EQ(function, reinterpret_cast<void*>(&MemAlloc));
  OK(GetProcAddress("cuMemAdvise", &function, 12010, 0, &status));
  EXPECT_EQ(function, reinterpret_cast<void*>(&MemAdvise));
  OK(GetProcAddress("cuMemAdvise", &function, 13000, 0, &status));
  EXPECT_EQ(function, reinterpret_cast<void*>(&MemAdviseV2));
  OK(GetProcAddress("cuNothing", &function, 13000, 0, &status));
  EXPECT_EQ(status, kCuProcNotFound);
  EXPECT_EQ(function, nullptr);
}

TEST_F(Preload, AFaultStaysUntilTheContextEnds) {
  const CuDevicePtr saved = numbers;
  numbers += uint64_t{1} << 40;
  OK(Launch(nullptr));
  EXPECT_EQ(CtxSynchronize(), kCuErrorIllegalAddress);
  numbers = saved;
  EXPECT_EQ(Launch(nullptr), kCuErrorIllegalAddress);
}

// What nvcc embeds: a header, and one entry of PTX that is not compressed.
std::vector<uint8_t> FatBinaryOf(const std::string& ptx, uint32_t compute_capability) {
  constexpr size_t kHeader = 16, kEntry = 64;
  std::vector<uint8_t> image(kHeader + kEntry + (ptx.size() + 8) / 8 * 8);
  const auto put = [&](size_t at, auto value) { std::memcpy(&image[at], &value, sizeof value); };
  put(0, uint32_t{0xba55ed50});
  put(4, uint16_t{1});
  put(6, uint16_t{kHeader});
  put(8, uint64_t{image.size() - kHeader});
  put(16, uint16_t{1});  // PTX
  put(18, uint16_t{0x101});
  put(20, uint32_t{kEntry});
  put(24, uint64_t{image.size() - kHeader - kEntry});
  put(44, compute_capability);
  std::memcpy(&image[kHeader + kEntry], ptx.data(), ptx.size());
  return image;
}

TEST(PreloadRuntime, RegisteredKernelsAndVariablesWork) {
  namespace cuda = emulator::runtime;
  const std::vector<uint8_t> image = FatBinaryOf(kKernels, 90);
  struct {
    uint32_t magic = 0x466243b1, version = 1;
    const void* image;
    void* names = nullptr;
  } record = {.image = image.data()};
  char kernel = 0, step = 0;  // what the host program has in their place: addresses
  void** module = cuda::RegisterFatBinary(&record);
  cuda::RegisterFunction(module, &kernel, &kernel, "add_step", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  cuda::RegisterVariable(module, &step, &step, "step", 0, 4, 0, 1);
  cuda::RegisterFatBinaryEnd(module);

  uint32_t count = 1000;
  const uint32_t five = 5;
  void* numbers = nullptr;
  ASSERT_EQ(cuda::Malloc(&numbers, 4096), 0);
  ASSERT_EQ(cuda::Memset(numbers, 0, 4096), 0);
  ASSERT_EQ(cuda::MemcpyToSymbol(&step, &five, 4, 0, cuda::kHostToDevice), 0);
  EXPECT_EQ(cuda::MemcpyToSymbol(&step, &five, 4, 1, cuda::kHostToDevice), kCuErrorInvalidValue);
  EXPECT_EQ(cuda::MemcpyToSymbol(&count, &five, 4, 0, cuda::kHostToDevice), cuda::kCudaInvalidSymbol);
  std::array<void*, 2> arguments = {&numbers, &count};
  ASSERT_EQ(cuda::LaunchKernel(&kernel, {4, 1, 1}, {256, 1, 1}, arguments.data(), 0, nullptr), 0);
  EXPECT_EQ(cuda::GetLastError(), cuda::kCudaInvalidSymbol) << "remembered until it is asked for";
  EXPECT_EQ(cuda::GetLastError(), 0);
  EXPECT_EQ(cuda::LaunchKernel(&kernel, {4, 1, 1}, {2048, 1, 1}, arguments.data(), 0, nullptr),
            cuda::kCudaInvalidConfiguration);
  EXPECT_EQ(cuda::LaunchKernel(&count, {4, 1, 1}, {256, 1, 1}, arguments.data(), 0, nullptr),
            cuda::kCudaInvalidDeviceFunction);
  EXPECT_STREQ(cuda::GetErrorName(cuda::PeekAtLastError()), "cudaErrorInvalidDeviceFunction");
  cuda::GetLastError();
  std::vector<uint32_t> got(1024);
  ASSERT_EQ(cuda::Memcpy(got.data(), numbers, 4096, cuda::kByAddress), 0);
  EXPECT_EQ(got[999], 5u);
  EXPECT_EQ(got[1000], 0u);
  cuda::DeviceProperties properties;
  ASSERT_EQ(cuda::GetDeviceProperties(&properties, 0), 0);
  EXPECT_EQ(properties.major, 10);
  EXPECT_EQ(properties.multiprocessors, 148);
  EXPECT_EQ(properties.shared_per_block_optin, 227u << 10);
  ASSERT_EQ(cuda::Free(numbers), 0);
  EXPECT_EQ(cuda::DeviceReset(), 0);
}

TEST_F(Preload, DamagedFatBinariesAreRefused) {
  CuModule refused = nullptr;
  const std::vector<uint8_t> good = FatBinaryOf(kKernels, 90);
  OK(ModuleLoadData(&refused, good.data()));
  std::vector<uint8_t> bad = good;
  bad[25] = 0xff;  // the entry passes the image's end
  EXPECT_EQ(ModuleLoadData(&refused, bad.data()), kCuErrorInvalidImage);
  bad = good;
  bad[16] = 2;  // machine code
  EXPECT_EQ(ModuleLoadData(&refused, bad.data()), kCuErrorNoBinaryForGpu);
  bad = FatBinaryOf(kKernels, 120);
  EXPECT_EQ(ModuleLoadData(&refused, bad.data()), kCuErrorNoBinaryForGpu);
  bad = good;
  bad[32] = 16;  // LZ4 of 16 bytes that are none
  bad[72] = 200;
  EXPECT_EQ(ModuleLoadData(&refused, bad.data()), kCuErrorInvalidImage);
}

}  // namespace
}  // namespace laneshift::tests
