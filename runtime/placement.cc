#include "runtime/placement.h"

#include "compiler/probes/placement_probe.h"
#include "device/buffer.h"
#include "device/launch.h"
#include "device/module.h"

namespace laneshift::runtime {
namespace {

// Clusters of one size divide a GPC at the same places in every launch; other sizes join the parts, and small clusters
// reach the SMs that large ones leave idle.
constexpr int kClusters[] = {8, 7, 6, 5, 4, 3, 2};
constexpr int kCtasOfSm = 4;  // CTAs of each SM

Result<compiler::Placement> Place(const device::Kernel& kernel, const device::Stream& stream, int cluster, int sms,
                                  device::DeviceBuffer& words) {
  compiler::Placement placement{.cluster = cluster,
                                .sms = std::vector<uint32_t>(static_cast<size_t>(sms / cluster * cluster * kCtasOfSm))};
  device::CuDevicePtr address = words.pointer();
  void* const parameters[] = {&address};
  LS_TRY(device::Launch(kernel,
                        {.grid = {static_cast<unsigned>(placement.sms.size()), 1, 1},
                         .block = {compiler::kPlacementThreads, 1, 1},
                         .cluster = {static_cast<unsigned>(cluster), 1, 1},
                         .dynamic_smem_bytes = compiler::kPlacementSharedBytes},
                        stream, parameters));
  LS_TRY(words.CopyToHost(stream, placement.sms.data(), placement.sms.size() * sizeof(uint32_t)));
  LS_TRY(stream.Synchronize());
  return placement;
}

}  // namespace

Result<std::vector<int>> PlaceClusters(const device::Device& device, const target::Target& target,
                                       const device::Stream& stream) {
  LS_ASSIGN(const compiler::PtxModule ptx, compiler::EmitPlacementProbe(target));
  LS_ASSIGN(const device::Module module, device::Module::LoadPtx(device.context(), ptx.ptx));
  LS_ASSIGN(device::Kernel kernel, module.GetKernel(ptx.entry));
  LS_TRY(kernel.AllowDynamicSmem(compiler::kPlacementSharedBytes));
  const int sms = device.facts().sm_count;
  LS_ASSIGN(device::DeviceBuffer words,
            device::DeviceBuffer::Allocate(device.context(), static_cast<size_t>(sms) * kCtasOfSm * sizeof(uint32_t)));
  std::vector<compiler::Placement> placements;
  for (const int cluster : kClusters) {
    LS_ASSIGN(compiler::Placement placement, Place(kernel, stream, cluster, sms, words));
    placements.push_back(std::move(placement));
  }
  return compiler::GpcSizes(placements);
}

}  // namespace laneshift::runtime
