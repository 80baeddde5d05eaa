#include "compiler/kernel_builder.h"
#include "compiler/passes.h"
#include "compiler/tma_reach.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::SharedLayout;
using ir::ValueId;

SharedLayout OperandTile(const GemmProblem& problem, const Schedule& schedule, Operand operand) {
  const StoredOperand stored = Stored(problem, operand);
  const auto extent = [&](Axis axis) {
    return axis == Axis::kM ? schedule.tile_m : axis == Axis::kN ? schedule.tile_n : schedule.tile_k;
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
                       .steps = problem.epilogue}),
        problem_(problem) {}

 private:
  LoadPath PathOf(Operand operand) const { return operand == Operand::kA ? schedule().a_load : schedule().b_load; }
  bool LoadsBy(LoadPath path) const override { return schedule().a_load == path || schedule().b_load == path; }

  void AddOperandParams(Operand operand, bool by_tma, const SharedLayout& box) {
    if (by_tma) return AddParam(ir::MapOf(operand), box);
    AddParams({ir::BaseOf(operand), ir::PitchOf(operand), ir::StrideOf(operand)});
  }

  void AddOperands() override {
    a_tile_ = OperandTile(problem_, schedule(), Operand::kA);
    b_tile_ = OperandTile(problem_, schedule(), Operand::kB);
    operands_ = AddChannel({.name = "ab", .stages = schedule().stages, .tiles = {{"a", a_tile_}, {"b", b_tile_}}});
    AddOperandParams(Operand::kA, schedule().a_load == LoadPath::kTma, a_tile_);
    AddOperandParams(Operand::kB, schedule().b_load == LoadPath::kTma, b_tile_);
  }

  void AddOutputs(const SharedLayout& out) override {
    const bool bulk = schedule().d_store == StorePath::kTma;
    AddOperandParams(Operand::kD, bulk, out);
    if (bulk && terms().HasMatrices()) AddParams({Binding::kPitchD, Binding::kStrideD});
    if (problem_.beta != 0) AddOperandParams(Operand::kC, false, {});
    if (problem_.bias != BiasAxis::kNone) AddParam(Binding::kBaseBias);
    AddEpilogueParams();
    AddParams({Binding::kM, Binding::kN, Binding::kK, Binding::kBatch, Binding::kAlpha});
    if (problem_.beta != 0) AddParam(Binding::kBeta);
  }

  ValueId KBlocks(Builder& b) const { return b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(schedule().tile_k)}); }

  void WriteLoads(Builder& b, LoadPath path, const Corner& corner) override {
    ForEach(b, KBlocks(b), [&](ValueId block) {
      const ValueId depth = b.Mul({block, b.Constant(schedule().tile_k)});
      const ValueId slot = b.Put({}, {.channel = operands_});
      for (const Operand operand : {Operand::kA, Operand::kB}) {
        if (PathOf(operand) != path) continue;
        const SharedLayout& tile = operand == Operand::kA ? a_tile_ : b_tile_;
        const auto start = [&](Axis axis) {
          return axis == Axis::kM ? corner.row : axis == Axis::kN ? corner.column : depth;
        };
        const std::vector<ValueId> at = {slot, start(tile.inner_axis), start(tile.outer_axis), corner.batch};
        const ir::LoadAttrs attrs{.tile = operand == Operand::kA ? 0 : 1, .operand = operand};
        if (path == LoadPath::kTma) {
          b.TmaLoad(at, attrs);
        } else {
          b.CopyLoad(at, attrs);
        }
      }
      b.Send({slot});
    });
  }

  void WriteProducts(Builder& b, ValueId accumulator, const Corner&) override {
    ForEach(b, KBlocks(b), [&](ValueId block) {
      const ValueId slot = b.Take({}, {.channel = operands_});
      const ValueId later = b.Less({b.Constant(0), block});
      Multiply(b, accumulator, slot, slot, later, {});
      ReleaseOperand(b, slot, later);
    });
  }

  std::vector<ValueId> StoreStart(Builder&, ValueId row, const Corner& corner) override { return {row, corner.batch}; }
  void WriteBulkStore(Builder& b, ValueId copy, ValueId column, const Corner&,
                      const std::vector<ValueId>& start) override {
    b.TmaStore({copy, column, start[0], start[1]}, {.buffer = 0});
  }

  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(problem_, operand, run); }

  const GemmProblem& problem_;
  SharedLayout a_tile_, b_tile_;
  int operands_ = -1;  // channel
};

}  // namespace

ir::Program BuildGemm(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  return GemmBuilder(problem, schedule, target).Build();
}

}  // namespace laneshift::compiler
