// Device operations of the emulator's tests: load a module, copy arrays, launch.
//
// Thread-safety: none; tests use the process-wide emulated driver one after another.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/driver/driver.h"

namespace laneshift::emulator {

inline std::string ReadTestFile(const std::string& name) {
  std::ifstream file(std::string(LANESHIFT_SOURCE_DIR) + "/tests/emulator/" + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void ReplaceFirst(std::string& text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

class TestDevice {
 public:
  explicit TestDevice(const Options& options) : api((Configure(options), Driver())) {
    EXPECT_EQ(api.Init(0), device::kCuSuccess);
    device::CuContext context = nullptr;
    EXPECT_EQ(api.DevicePrimaryCtxRetain(&context, 0), device::kCuSuccess);
    EXPECT_EQ(api.CtxSetCurrent(context), device::kCuSuccess);
  }

  // The kernel, or nullptr with `log` filled.
  device::CuFunction Load(const std::string& ptx, const char* kernel) {
    std::array<char, 4096> text{};
    std::array<device::CuJitOption, 2> options = {device::kCuJitErrorLogBuffer, device::kCuJitErrorLogBufferSizeBytes};
    std::array<void*, 2> values = {text.data(), reinterpret_cast<void*>(text.size())};
    device::CuModule module = nullptr;
    load_result = api.ModuleLoadDataEx(&module, ptx.c_str(), 2, options.data(), values.data());
    log = text.data();
    device::CuFunction function = nullptr;
    if (load_result == device::kCuSuccess) {
      EXPECT_EQ(api.ModuleGetFunction(&function, module, kernel), device::kCuSuccess);
    }
    return function;
  }

  template <typename T>
  device::CuDevicePtr Upload(const std::vector<T>& values) {
    const device::CuDevicePtr pointer = Allocate(values.size() * sizeof(T));
    EXPECT_EQ(api.MemcpyHtoDAsync(pointer, values.data(), values.size() * sizeof(T), nullptr), device::kCuSuccess);
    return pointer;
  }
  device::CuDevicePtr Allocate(size_t bytes) {
    device::CuDevicePtr pointer = 0;
    EXPECT_EQ(api.MemAlloc(&pointer, bytes), device::kCuSuccess);
    return pointer;
  }
  template <typename T>
  std::vector<T> Download(device::CuDevicePtr from, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(api.MemcpyDtoHAsync(values.data(), from, count * sizeof(T), nullptr), device::kCuSuccess);
    return values;
  }

  device::CuResult Launch(device::CuFunction function, std::array<unsigned, 3> grid, unsigned threads, unsigned shared,
                          std::vector<void*> parameters, unsigned cluster = 1) {
    device::CuLaunchAttribute attribute{};
    attribute.id = device::kCuLaunchClusterDimension;
    attribute.value.cluster_dim = {cluster, 1, 1};
    device::CuLaunchConfig config{grid[0], grid[1], grid[2], threads,    1,
                                  1,       shared,  nullptr, &attribute, cluster > 1 ? 1u : 0u};
    if (shared > 48 * 1024) {
      EXPECT_EQ(api.FuncSetAttribute(function, device::kCuFuncMaxDynamicSharedSizeBytes, static_cast<int>(shared)),
                device::kCuSuccess);
    }
    if (const auto result = api.LaunchKernelEx(&config, function, parameters.data(), nullptr);
        result != device::kCuSuccess)
      return result;
    return api.CtxSynchronize();
  }

  // A row-major matrix of 16-bit elements in boxes of 64 columns with 128-byte swizzle.
  device::CuTensorMap Map(device::CuTensorMapDataType type, device::CuDevicePtr base, uint64_t rows, uint64_t columns,
                          uint32_t box_rows) {
    device::CuTensorMap map{};
    const uint64_t dims[] = {columns, rows}, strides[] = {columns * 2};
    const uint32_t box[] = {64, box_rows}, steps[] = {1, 1};
    EXPECT_EQ(api.TensorMapEncodeTiled(&map, type, 2, reinterpret_cast<void*>(base), dims, strides, box, steps,
                                       device::kCuInterleaveNone, device::kCuSwizzle128, device::kCuL2Of128,
                                       device::kCuOobZero),
              device::kCuSuccess);
    return map;
  }

  device::DriverApi api;
  device::CuResult load_result = device::kCuSuccess;
  std::string log;
};

}  // namespace laneshift::emulator
