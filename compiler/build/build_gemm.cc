// The parts of a GEMM's kernel: both operands are matrices.
#include <utility>

#include "compiler/build/kernel_frame.h"
#include "compiler/build/matrix_loader.h"
#include "compiler/build/ring_mainloop.h"
#include "compiler/legality/promotion.h"
#include "compiler/legality/tma_reach.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

// What one CTA holds of a tile, as it is stored, or along K where it is transposed on its way.
MatrixOperand OperandOf(const GemmProblem& problem, const Schedule& schedule, Operand operand,
                        const target::Target& target) {
  StoredOperand stored = Stored(problem, operand);
  const bool transposed = Transposes(problem, operand, target);
  if (transposed) std::swap(stored.inner_axis, stored.outer_axis);
  const auto extent = [&](Axis axis) {
    return axis == Axis::kM ? schedule.tile_m : axis == Axis::kN ? schedule.tile_n / schedule.ctas : schedule.tile_k;
  };
  const int inner = extent(stored.inner_axis);
  return {.operand = operand,
          .tile = {.type = stored.type,
                   .outer_axis = stored.outer_axis,
                   .inner_axis = stored.inner_axis,
                   .outer = extent(stored.outer_axis),
                   .inner = inner,
                   .swizzle = ir::WidestSwizzle(inner * static_cast<int>(DataTypeBytes(stored.type)))},
          .transposed = transposed};
}

class MatrixOutput final : public OutputTensor {
 public:
  explicit MatrixOutput(const GemmProblem& problem) : problem_(problem) {}

  void AddPitches(Operand operand, std::vector<ir::Param>& params) const override {
    params.insert(params.end(), {{ir::PitchOf(operand), {}}, {ir::StrideOf(operand), {}}});
  }
  void AddSizes(std::vector<ir::Param>& params) const override {
    for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch}) params.push_back({size, {}});
  }
  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(problem_, operand, run); }
  std::vector<ValueId> StoreStart(Builder&, ValueId row, const Corner& corner) const override {
    return {row, corner.batch};
  }
  void BulkStore(Builder& b, ValueId copy, ValueId column, const Corner&, const std::vector<ValueId>& start,
                 const ir::BulkStoreAttrs& attrs) const override {
    b.TmaStore({copy, column, start[0], start[1]}, attrs);
  }

 private:
  const GemmProblem& problem_;
};

}  // namespace

ir::Program BuildGemm(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  const OperandParts cluster(schedule, ir::JoinsHalves(problem.epilogue));
  const MatrixOperand a = OperandOf(problem, schedule, Operand::kA, target);
  const MatrixOperand b = OperandOf(problem, schedule, Operand::kB, target);
  const bool resident = schedule.b_keep > 0;
  KernelParts parts{.name = "gemm",
                    .operand_type = problem.a,
                    .terms = {.type = problem.d,
                              .c_type = problem.c,
                              .adds_c = problem.beta != 0,
                              .bias = problem.bias,
                              .scale = problem.scale,
                              .promotes = Promotes(problem, target),
                              .steps = problem.epilogue,
                              .orders_sums = ir::OrdersSums(problem.epilogue, problem.numerics)},
                    .k = {.tile_k = schedule.tile_k}};
  parts.loaders.push_back(
      std::make_unique<MatrixLoader>(LoadTarget{.path = schedule.a_load, .channel = 0}, a, cluster));
  if (resident) {
    parts.channels = {{.name = "a", .stages = schedule.stages, .tiles = {{"a", a.tile}}},
                      {.name = "b", .stages = schedule.b_keep, .tiles = {{"b", b.tile}}, .stays = true}};
    const LoadTarget to{.path = schedule.b_load, .channel = 1};
    parts.resident = std::make_unique<ResidentMatrixLoader>(to, b, parts.k, cluster);
  } else {
    parts.channels = {{.name = "ab", .stages = schedule.stages, .tiles = {{"a", a.tile}, {"b", b.tile}}}};
    const LoadTarget to{.path = schedule.b_load, .channel = 0, .tile = 1};
    parts.loaders.push_back(std::make_unique<MatrixLoader>(to, b, cluster));
  }
  parts.mainloop = std::make_unique<RingMainloop>(parts.k, RingSlots{.ring = 0, .resident = resident ? 1 : -1});
  parts.output = std::make_unique<MatrixOutput>(problem);
  return JoinKernel(std::move(parts), schedule, target);
}

}  // namespace laneshift::compiler
