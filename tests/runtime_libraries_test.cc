// A library that a program loads itself, by the runtime's functions: its kernels are launched by their handles.

#include <gtest/gtest.h>

#include "emulator/cudart/runtime_functions.h"
#include "emulator/driver/driver.h"

namespace laneshift::emulator::runtime {
namespace {

constexpr const char* kText = R"(.version 8.8
.target sm_90
.address_size 64
.visible .global .u32 offset = 40;
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [offset];
  add.u32 %r2, %r1, 2;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

TEST(RuntimeLibraries, LaunchByTheirHandles) {
  emulator::Configure({});
  CuLibrary library = nullptr;
  ASSERT_EQ(LibraryLoadData(&library, kText, nullptr, nullptr, 0, nullptr, nullptr, 0), 0);
  unsigned count = 0;
  EXPECT_EQ(LibraryGetKernelCount(&count, library), 0);
  ASSERT_EQ(count, 1u);
  CuFunction kernel = nullptr, listed = nullptr;
  ASSERT_EQ(LibraryGetKernel(&kernel, library, "k"), 0);
  EXPECT_EQ(LibraryEnumerateKernels(&listed, 1, library), 0);
  EXPECT_EQ(listed, kernel);
  EXPECT_EQ(KernelSetAttributeForDevice(kernel, device::kCuFuncMaxDynamicSharedSizeBytes, 100'000, 0), 0);
  void *variable = nullptr, *out = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(LibraryGetGlobal(&variable, &bytes, library, "offset"), 0);
  EXPECT_EQ(bytes, 4u);
  ASSERT_EQ(Malloc(&out, 4), 0);
  void* arguments[] = {&out};
  LaunchConfig config = {};
  config.grid = config.block = {1, 1, 1};
  config.shared_bytes = 100'000;
  ASSERT_EQ(LaunchKernelExC(&config, kernel, arguments), 0);
  uint32_t word = 0;
  ASSERT_EQ(Memcpy(&word, out, 4, kDeviceToHost), 0);
  EXPECT_EQ(word, 42u);
  EXPECT_EQ(LibraryGetKernel(&kernel, library, "other"), 500) << "cudaErrorSymbolNotFound";
  EXPECT_EQ(GetLastError(), 500);
  EXPECT_EQ(Free(out), 0);
  EXPECT_EQ(LibraryUnload(library), 0);
}

}  // namespace
}  // namespace laneshift::emulator::runtime
