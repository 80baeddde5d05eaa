#include "compiler/kernel_builder.h"
#include "compiler/passes.h"
#include "compiler/promotion.h"
#include "compiler/tma_reach.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::SharedLayout;
using ir::ValueId;

// What one CTA holds of a tile, as it is stored, or along K where it is transposed on its way.
SharedLayout OperandTile(const GemmProblem& problem, const Schedule& schedule, Operand operand, bool transposed) {
  StoredOperand stored = Stored(problem, operand);
  if (transposed) std::swap(stored.inner_axis, stored.outer_axis);
  const auto extent = [&](Axis axis) {
    return axis == Axis::kM ? schedule.tile_m : axis == Axis::kN ? schedule.tile_n / schedule.ctas : schedule.tile_k;
  };
  const int inner = extent(stored.inner_axis);
  return {.type = stored.type,
          .outer_axis = stored.outer_axis,
          .inner_axis = stored.inner_axis,
          .outer = extent(stored.outer_axis),
          .inner = inner,
          .swizzle = ir::WidestSwizzle(inner * static_cast<int>(DataTypeBytes(stored.type)))};
}

class GemmBuilder : public KernelBuilder {
 public:
  GemmBuilder(const GemmProblem& problem, const Schedule& schedule, const target::Target& target)
      : KernelBuilder("gemm", schedule, target, problem.a,
                      {.type = problem.d,
                       .c_type = problem.c,
                       .adds_c = problem.beta != 0,
                       .bias = problem.bias,
                       .scale = problem.scale,
                       .promotes = Promotes(problem, target),
                       .steps = problem.epilogue}),
        problem_(problem),
        transposes_a_(Transposes(problem, Operand::kA, target)),
        transposes_b_(Transposes(problem, Operand::kB, target)) {}

 private:
  LoadPath PathOf(Operand operand) const { return operand == Operand::kA ? schedule().a_load : schedule().b_load; }
  bool LoadsBy(LoadPath path) const override { return schedule().a_load == path || schedule().b_load == path; }

  void AddOperandParams(Operand operand, bool by_tma, const SharedLayout& box) {
    if (by_tma) return AddParam(ir::MapOf(operand), box);
    AddParams({ir::BaseOf(operand), ir::PitchOf(operand), ir::StrideOf(operand)});
  }

  void AddOperands() override {
    a_tile_ = OperandTile(problem_, schedule(), Operand::kA, transposes_a_);
    b_tile_ = OperandTile(problem_, schedule(), Operand::kB, transposes_b_);
    operands_ = AddChannel({.name = "ab", .stages = schedule().stages, .tiles = {{"a", a_tile_}, {"b", b_tile_}}});
    AddOperandParams(Operand::kA, schedule().a_load == LoadPath::kTma, PartOf(a_tile_, Operand::kA));
    AddOperandParams(Operand::kB, schedule().b_load == LoadPath::kTma, PartOf(b_tile_, Operand::kB));
  }

  void AddOutputs() override {
    const bool bulk = schedule().d_store == StorePath::kTma;
    bulk ? AddMapsOfD() : AddOperandParams(Operand::kD, false, {});
    if (bulk && terms().HasMatrices()) AddParams({Binding::kPitchD, Binding::kStrideD});
    if (problem_.beta != 0) AddOperandParams(Operand::kC, false, {});
    if (problem_.bias != BiasAxis::kNone) AddParam(Binding::kBaseBias);
    AddFactorParams();
    AddEpilogueParams();
    AddParams({Binding::kM, Binding::kN, Binding::kK, Binding::kBatch, Binding::kAlpha});
    if (problem_.beta != 0) AddParam(Binding::kBeta);
  }

  ValueId BlocksOfTile(Builder& b) const override {
    return b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(schedule().tile_k)});
  }

  void WriteLoads(Builder& b, LoadPath path, const Corner& corner) override {
    const ValueId column = ColumnOfB(b, corner.column);
    ForEachBlock(b, corner, [&](ValueId block) {
      const ValueId depth = b.Mul({block, b.Constant(schedule().tile_k)});
      const ValueId slot = b.Put({}, {.channel = operands_});
      for (const Operand operand : {Operand::kA, Operand::kB}) {
        if (PathOf(operand) != path) continue;
        const SharedLayout& tile = operand == Operand::kA ? a_tile_ : b_tile_;
        const auto start = [&](Axis axis) { return axis == Axis::kM ? corner.row : axis == Axis::kN ? column : depth; };
        std::vector<ValueId> at = {slot, start(tile.inner_axis), start(tile.outer_axis), corner.batch};
        const int index = operand == Operand::kA ? 0 : 1;
        const bool transposed = operand == Operand::kA ? transposes_a_ : transposes_b_;
        if (path == LoadPath::kTma) {
          at[2] = PartStart(b, at[2], operand, PartOf(tile, operand).outer);
          b.TmaLoad(at, {.tile = index, .operand = operand, .to = ReachOf(operand)});
        } else {
          b.CopyLoad(at, {.tile = index, .operand = operand, .transposed = transposed ? 1 : 0});
        }
      }
      b.Send({slot});
    });
  }

  void WriteProducts(Builder& b, ValueId accumulator, const Corner& corner) override {
    ForEachBlock(b, corner, [&](ValueId block) {
      const ValueId factors = LoadFactors(b, block);
      const ValueId slot = b.Take({}, {.channel = operands_});
      const ValueId later = IsLater(b, corner, block);
      Multiply(b, accumulator, slot, slot, later, {});
      ReleaseOperand(b, slot, later);
      Promote(b, factors);
    });
  }

  std::vector<ValueId> StoreStart(Builder&, ValueId row, const Corner& corner) override { return {row, corner.batch}; }
  void WriteBulkStore(Builder& b, ValueId copy, ValueId column, const Corner&, const std::vector<ValueId>& start,
                      const ir::BulkStoreAttrs& attrs) override {
    b.TmaStore({copy, column, start[0], start[1]}, attrs);
  }

  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(problem_, operand, run); }

  const GemmProblem& problem_;
  const bool transposes_a_, transposes_b_;
  SharedLayout a_tile_, b_tile_;
  int operands_ = -1;  // channel
};

}  // namespace

ir::Program BuildGemm(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  return GemmBuilder(problem, schedule, target).Build();
}

}  // namespace laneshift::compiler
