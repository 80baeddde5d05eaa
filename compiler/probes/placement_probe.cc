#include "compiler/probes/placement_probe.h"

#include <algorithm>
#include <functional>
#include <map>

#include "compiler/emit/emitter.h"
#include "compiler/emit/nvptx_backend.h"

namespace laneshift::compiler {
namespace {

constexpr const char* kPlacementEntry = "laneshift_placement_probe";
constexpr int kWordBytes = 4;

void EmitKernel(const target::Target& target, llvm::Module& module) {
  Emitter e(module, target);
  llvm::IRBuilder<>& b = e.ir();
  e.BeginKernel(kPlacementEntry, {e.I64()}, static_cast<int>(kPlacementThreads));
  Value* offset = b.CreateMul(b.CreateZExt(e.CtaIndex(), e.I64()), e.C64(kWordBytes));
  e.StoreGlobalElement(kWordBytes, b.CreateAdd(e.Parameter(0), offset), e.SmIndex(),
                       b.CreateICmpEQ(e.ThreadIndex(), e.C32(0)));
  e.Return();
}

}  // namespace

Result<PtxModule> EmitPlacementProbe(const target::Target& target) {
  LS_ASSIGN(BackendText text, CompileModule(target, false, [&](llvm::Module& module) { EmitKernel(target, module); }));
  return PtxModule{.ptx = std::move(text.ptx), .entry = kPlacementEntry, .llvm_ir = {}};
}

std::vector<int> GpcSizes(std::span<const Placement> placements) {
  std::map<uint32_t, uint32_t> parents;
  const std::function<uint32_t(uint32_t)> root = [&](uint32_t sm) {
    uint32_t& parent = parents.try_emplace(sm, sm).first->second;
    return parent == sm ? sm : parent = root(parent);
  };
  for (const Placement& placement : placements) {
    const auto together = static_cast<size_t>(placement.cluster);
    for (size_t i = 0; i < placement.sms.size(); ++i) {
      parents[root(placement.sms[i])] = root(placement.sms[i / together * together]);
    }
  }
  std::map<uint32_t, int> sizes;
  for (const auto& [sm, parent] : parents) ++sizes[root(sm)];
  std::vector<int> sorted;
  for (const auto& [first, size] : sizes) sorted.push_back(size);
  std::sort(sorted.rbegin(), sorted.rend());
  return sorted;
}

}  // namespace laneshift::compiler
