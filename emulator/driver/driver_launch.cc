// Launches of the emulated driver: what a launch asks for, checked and packed.

#include <algorithm>
#include <cstring>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator {

using namespace device;  // NOLINT: the driver's own types and codes

CuResult ShapeOf(const CuLaunchConfig& config, const LoadedFunction& function, GridShape& shape) {
  const FunctionSyntax& syntax = *function.kernel->syntax;
  shape.grid = {config.grid_x, config.grid_y, config.grid_z};
  shape.block = {config.block_x, config.block_y, config.block_z};
  shape.dynamic_shared = config.shared_mem_bytes;
  if (syntax.reqnctapercluster[0] != 0) shape.cluster = syntax.reqnctapercluster;
  shape.explicit_cluster = syntax.explicit_cluster;
  for (unsigned a = 0; a < config.attribute_count; ++a) {
    const CuLaunchAttribute& attribute = config.attributes[a];
    if (attribute.id != kCuLaunchClusterDimension) continue;
    const auto& dim = attribute.value.cluster_dim;
    const std::array<uint32_t, 3> wanted = {dim.x, dim.y, dim.z};
    if (syntax.reqnctapercluster[0] != 0 && wanted != syntax.reqnctapercluster) return kCuErrorInvalidValue;
    shape.cluster = wanted;
    shape.explicit_cluster = true;
  }
  uint64_t threads = 1, ctas = 1, clusters = 1;
  for (size_t d = 0; d < 3; ++d) {
    if (shape.grid[d] == 0 || shape.block[d] == 0 || shape.block[d] > 1024 || shape.cluster[d] == 0)
      return kCuErrorInvalidValue;
    if (shape.grid[d] > (d == 0 ? 0x7fffffffu : 65535u)) return kCuErrorInvalidValue;
    if (shape.grid[d] % shape.cluster[d] != 0) return kCuErrorInvalidClusterSize;
    threads *= shape.block[d];
    ctas *= shape.cluster[d];
    clusters *= shape.grid[d] / shape.cluster[d];
  }
  if (threads > 1024 || clusters > 0xffffffffu) return kCuErrorInvalidValue;
  if (ctas > (function.large_clusters ? 16 : 8)) return kCuErrorInvalidClusterSize;
  if (syntax.reqntid[0] != 0 && shape.block != syntax.reqntid) return kCuErrorInvalidValue;
  if (syntax.maxntid[0] != 0 && threads > uint64_t{syntax.maxntid[0]} * syntax.maxntid[1] * syntax.maxntid[2])
    return kCuErrorInvalidValue;
  if (shape.dynamic_shared > static_cast<uint32_t>(function.max_dynamic_shared)) return kCuErrorInvalidValue;
  if (shape.dynamic_shared + function.kernel->static_shared_bytes > kMaxSharedBytes) return kCuErrorInvalidValue;
  return kCuSuccess;
}

std::optional<std::vector<uint8_t>> PackParameters(const FunctionSyntax& syntax, void** parameters, void** extra) {
  // Keys of `extra`, each followed by its value.
  constexpr uintptr_t kEnd = 0, kBuffer = 1, kBufferBytes = 2;
  std::vector<uint8_t> block(syntax.parameter_bytes);
  if (extra != nullptr) {
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (; reinterpret_cast<uintptr_t>(extra[0]) != kEnd; extra += 2) {
      const auto key = reinterpret_cast<uintptr_t>(extra[0]);
      if (key != kBuffer && key != kBufferBytes) return std::nullopt;
      if (key == kBuffer) buffer = extra[1];
      if (key == kBufferBytes) bytes = *static_cast<const size_t*>(extra[1]);
    }
    if (parameters != nullptr || bytes > block.size() || (bytes != 0 && buffer == nullptr)) return std::nullopt;
    std::copy_n(static_cast<const uint8_t*>(buffer), bytes, block.begin());
    return block;
  }
  if (parameters == nullptr && !syntax.parameters.empty()) return std::nullopt;
  for (size_t p = 0; p < syntax.parameters.size(); ++p) {
    std::memcpy(block.data() + syntax.parameters[p].offset, parameters[p], syntax.parameters[p].bytes);
  }
  return block;
}

namespace driver::body {

CuResult LaunchKernelEx(const CuLaunchConfig* config, CuFunction function, void** parameters, void** extra) {
  LS_READY();
  LoadedFunction* loaded = Known(state.functions, function);
  if (loaded == nullptr) return kCuErrorInvalidHandle;
  if (config == nullptr) return kCuErrorInvalidValue;
  KernelRun run{loaded, {}, {}};
  if (const CuResult bad = ShapeOf(*config, *loaded, run.shape); bad != kCuSuccess) return bad;
  auto block = PackParameters(*loaded->kernel->syntax, parameters, extra);
  if (!block) return kCuErrorInvalidValue;
  run.parameters = std::move(*block);
  for (unsigned a = 0; a < config->attribute_count; ++a) {
    const CuLaunchAttribute& attribute = config->attributes[a];
    if (attribute.id == kCuLaunchProgrammaticStreamSerialization)
      run.may_overlap = attribute.value.programmatic_stream_serialization != 0;
  }
  return state.Submit(config->stream, kCuNodeKernel, std::move(run));
}

CuResult LaunchKernel(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_mem_bytes, CuStream stream, void** parameters,
                      void** extra) {
  const CuLaunchConfig config{grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_mem_bytes, stream, nullptr, 0};
  return LaunchKernelEx(&config, function, parameters, extra);
}

CuResult LaunchCooperativeKernel(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_mem_bytes,
                                 CuStream stream, void** parameters) {
  CuLaunchAttribute cooperative = {};
  cooperative.id = kCuLaunchCooperative;
  cooperative.value.cooperative = 1;
  const CuLaunchConfig config{grid_x,  grid_y,           grid_z, block_x,      block_y,
                              block_z, shared_mem_bytes, stream, &cooperative, 1};
  return LaunchKernelEx(&config, function, parameters, nullptr);
}

}  // namespace driver::body
}  // namespace laneshift::emulator
