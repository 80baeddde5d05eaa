// Occupancy of the emulated driver: how many blocks and clusters would fit, by the device's limits.
//
// PTX has no register allocation, so that registers count only where the kernel declares a limit (.maxnreg).

#include <algorithm>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator::driver::body {

using namespace device;  // NOLINT: the driver's own types and codes
namespace {

constexpr uint32_t kSharedGranule = 128;

int MaxBlockOf(const LoadedFunction& function) {
  const FunctionSyntax& syntax = *function.kernel->syntax;
  const auto& dims = syntax.reqntid[0] != 0 ? syntax.reqntid : syntax.maxntid;
  return dims[0] != 0 ? static_cast<int>(dims[0] * dims[1] * dims[2]) : 1024;
}

uint32_t SharedOf(const LoadedFunction& function, size_t dynamic_shared) {
  const size_t bytes = function.kernel->static_shared_bytes + dynamic_shared + kReservedSharedBytes;
  return static_cast<uint32_t>((bytes + kSharedGranule - 1) / kSharedGranule * kSharedGranule);
}

int BlocksPerProcessor(const LoadedFunction& function, int block, size_t dynamic_shared) {
  if (block < 1 || block > MaxBlockOf(function) || dynamic_shared > kMaxSharedBytes) return 0;
  const int threads = (block + kLanes - 1) / kLanes * kLanes;
  int blocks = std::min(kBlocksPerProcessor, kThreadsPerProcessor / threads);
  blocks = std::min(blocks, static_cast<int>(kSharedBytesPerProcessor / SharedOf(function, dynamic_shared)));
  if (const auto registers = static_cast<int>(function.kernel->syntax->maxnreg); registers != 0)
    blocks = std::min(blocks, kRegistersPerProcessor / (registers * threads));
  return blocks;
}

uint32_t ClusterBlocks(const CuLaunchConfig& config, const LoadedFunction& function) {
  const auto& required = function.kernel->syntax->reqnctapercluster;
  uint32_t blocks = required[0] != 0 ? required[0] * required[1] * required[2] : 1;
  for (unsigned a = 0; a < config.attribute_count; ++a) {
    const auto& dim = config.attributes[a].value.cluster_dim;
    if (config.attributes[a].id == kCuLaunchClusterDimension) blocks = dim.x * dim.y * dim.z;
  }
  return blocks;
}

}  // namespace

CuResult OccupancyMaxActiveBlocksWithFlags(int* blocks, CuFunction function, int block, size_t dynamic_shared,
                                           unsigned) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  if (blocks == nullptr || block < 1) return kCuErrorInvalidValue;
  return *blocks = BlocksPerProcessor(*known, block, dynamic_shared), kCuSuccess;
}
CuResult OccupancyMaxActiveBlocks(int* blocks, CuFunction function, int block, size_t dynamic_shared) {
  return OccupancyMaxActiveBlocksWithFlags(blocks, function, block, dynamic_shared, 0);
}

CuResult OccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CuFunction function, CuBlockToShared shared_of,
                                                 size_t dynamic_shared, int limit, unsigned) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  int best = 0;
  *grid = *block = 0;
  for (int size = limit > 0 ? std::min(limit, MaxBlockOf(*known)) : MaxBlockOf(*known); size > 0;
       size = (size - 1) / kLanes * kLanes) {
    const int blocks = BlocksPerProcessor(*known, size, shared_of != nullptr ? shared_of(size) : dynamic_shared);
    if (blocks * size <= best) continue;
    best = blocks * size;
    *block = size;
    *grid = blocks * ProfileOf(state.options).multiprocessors;
  }
  return kCuSuccess;
}
CuResult OccupancyMaxPotentialBlockSize(int* grid, int* block, CuFunction function, CuBlockToShared shared_of,
                                        size_t dynamic_shared, int limit) {
  return OccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, dynamic_shared, limit, 0);
}

CuResult OccupancyAvailableDynamicShared(size_t* bytes, CuFunction function, int blocks, int block) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  if (bytes == nullptr || blocks < 1 || blocks > kBlocksPerProcessor || block < 1) return kCuErrorInvalidValue;
  const uint32_t taken = kReservedSharedBytes + known->kernel->static_shared_bytes;
  const uint32_t share = kSharedBytesPerProcessor / static_cast<uint32_t>(blocks) / kSharedGranule * kSharedGranule;
  return *bytes = share > taken ? share - taken : 0, kCuSuccess;
}

CuResult OccupancyMaxPotentialClusterSize(int* size, CuFunction function, const CuLaunchConfig* config) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  if (size == nullptr || config == nullptr) return kCuErrorInvalidValue;
  return *size = known->large_clusters ? 16 : 8, kCuSuccess;
}

// Without the borders of GPCs, which a real device's clusters do not cross: an upper bound.
CuResult OccupancyMaxActiveClusters(int* clusters, CuFunction function, const CuLaunchConfig* config) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  if (clusters == nullptr || config == nullptr) return kCuErrorInvalidValue;
  const uint32_t blocks = ClusterBlocks(*config, *known);
  if (blocks == 0 || blocks > (known->large_clusters ? 16u : 8u)) return kCuErrorInvalidClusterSize;
  const uint64_t threads = uint64_t{config->block_x} * config->block_y * config->block_z;
  if (threads == 0 || threads > 1024) return kCuErrorInvalidValue;
  const int resident = BlocksPerProcessor(*known, static_cast<int>(threads), config->shared_mem_bytes) *
                       ProfileOf(state.options).multiprocessors;
  return *clusters = resident / static_cast<int>(blocks), kCuSuccess;
}

}  // namespace laneshift::emulator::driver::body
