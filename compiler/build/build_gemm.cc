// The parts of a GEMM's kernel: both operands are matrices.
#include <string_view>
#include <utility>

#include "base/text.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/matrix_loader.h"
#include "compiler/build/ring_mainloop.h"
#include "compiler/build/scale_factors.h"
#include "compiler/legality/promotion.h"
#include "compiler/passes.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

class MatrixOutput final : public OutputTensor {
 public:
  // REQUIRES: it outlives the output.
  explicit MatrixOutput(const Contraction& contraction) : contraction_(contraction) {}

  void AddPitches(Operand operand, std::vector<ir::Param>& params) const override {
    params.push_back({ir::PitchOf(operand), {}});
    if (!contraction_.grouped) params.push_back({ir::StrideOf(operand), {}});
  }
  void AddSizes(std::vector<ir::Param>& params) const override {
    if (contraction_.group_rows > 0) {
      params.insert(params.end(), {{Binding::kGroupSizes, {}}, {Binding::kGroupRows, {}}});
    } else if (contraction_.grouped) {
      params.push_back({Binding::kGroupOffsets, {}});
    }
    for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch}) params.push_back({size, {}});
  }
  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(contraction_.Of(operand), run); }
  std::vector<ValueId> StoreStart(Builder&, ValueId row, const Corner& corner) const override {
    return {row, corner.batch};
  }
  void BulkStore(Builder& b, ValueId copy, ValueId column, const Corner&, const std::vector<ValueId>& start,
                 const ir::BulkStoreAttrs& attrs) const override {
    b.TmaStore({copy, column, start[0], start[1]}, attrs);
  }

 private:
  const Contraction& contraction_;
};

ir::WorkSource SourceOfWork(const Contraction& contraction) {
  if (!contraction.grouped) return ir::WorkSource::kStatic;
  return contraction.group_rows > 0 ? ir::WorkSource::kMaskedGroups : ir::WorkSource::kGroups;
}

// In the slots of the ring after A and B; in Tensor Memory two sets, so that one is filled while the other is used.
void AddScaleFactors(const Schedule& schedule, const ir::BlockScaling& scaling, KernelParts& parts) {
  constexpr int kSets = 2;
  const ScaleTiles of_a{.operand = Operand::kA, .scaling = scaling, .rows = schedule.tile_m, .tile_k = schedule.tile_k};
  const ScaleTiles of_b{.operand = Operand::kB, .scaling = scaling, .rows = schedule.tile_n, .tile_k = schedule.tile_k};
  ScaledMainloop::Slots slots{.ring = 0, .factors = 1, .a_tile = 0, .b_tile = 1, .a_scales = of_a, .b_scales = of_b};
  std::vector<ir::TileSlot>& tiles = parts.channels[0].tiles;
  const auto add = [&](const ScaleTiles& scales, std::string_view name) {
    const int first = static_cast<int>(tiles.size());
    for (int i = 0; i < scales.Count(); ++i) tiles.push_back({base::Cat(name, i), scales.Layout()});
    parts.loaders.push_back(
        std::make_unique<ScaleLoader>(LoadTarget{.path = LoadPath::kTma, .channel = 0, .tile = first}, scales));
    return first;
  };
  slots.a_scale_tile = add(of_a, "sa");
  slots.b_scale_tile = add(of_b, "sb");
  parts.channels.push_back({.name = "scales",
                            .space = ir::Space::kTensor,
                            .stages = kSets,
                            .rows = ir::kTensorLanes,
                            .columns = of_a.Columns() + of_b.Columns(),
                            .is_private = true});
  parts.mainloop = std::make_unique<ScaledMainloop>(parts.k, slots);
}

}  // namespace

ir::Program BuildGemm(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  const OperandParts cluster(schedule, ir::HasSplitGateUp(contraction.epilogue()));
  const MatrixOperand a = MatrixOperandOf(contraction, schedule, Operand::kA, target);
  const MatrixOperand b = MatrixOperandOf(contraction, schedule, Operand::kB, target);
  const bool resident = schedule.b_keep > 0;
  const ir::RowMap rows = contraction.grouped ? ir::RowMap::kGroups : ir::RowMap::kMatrix;
  KernelParts parts{.name = contraction.grouped ? "grouped_gemm" : "gemm",
                    .operand_type = contraction.a.type(),
                    .saturates = contraction.sum == SumPrecision::kSaturate,
                    .source = SourceOfWork(contraction),
                    .terms = TermsOf(contraction, rows, target),
                    .k = {.tile_k = schedule.tile_k}};
  const LoadTarget of_a{.path = schedule.a_load, .channel = 0};
  parts.loaders.reserve(4);
  parts.loaders.push_back(std::make_unique<MatrixLoader>(of_a, a, cluster));
  if (resident) {
    parts.channels.push_back({.name = "a", .stages = schedule.stages, .tiles = {{"a", a.tile}}});
    parts.channels.push_back({.name = "b", .stages = schedule.b_keep, .tiles = {{"b", b.tile}}, .resident = true});
    const LoadTarget of_b{.path = schedule.b_load, .channel = 1};
    parts.resident = std::make_unique<ResidentMatrixLoader>(of_b, b, parts.k, cluster);
  } else {
    parts.channels.push_back({.name = "ab", .stages = schedule.stages, .tiles = {{"a", a.tile}, {"b", b.tile}}});
    const LoadTarget of_b{.path = schedule.b_load, .channel = 0, .tile = 1};
    parts.loaders.push_back(std::make_unique<MatrixLoader>(of_b, b, cluster));
  }
  if (const auto scaling = ir::BlockScalingOf(contraction.scale)) {
    AddScaleFactors(schedule, *scaling, parts);
  } else {
    parts.mainloop = std::make_unique<RingMainloop>(parts.k, RingSlots{.ring = 0, .resident = resident ? 1 : -1});
  }
  parts.output = std::make_unique<MatrixOutput>(contraction);
  return JoinKernel(std::move(parts), schedule, target);
}

}  // namespace laneshift::compiler
