#include "compiler/build/kernel_builder.h"
#include "compiler/legality/promotion.h"
#include "compiler/legality/tma_reach.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::SharedLayout;
using ir::ValueId;

// What one CTA holds of a tile, as it is stored, or along K where it is transposed on its way.
SharedLayout OperandTile(const OperandSource& source, const Schedule& schedule, bool transposed) {
  const Axis outer_axis = transposed ? source.inner_axis : source.outer_axis;
  const Axis inner_axis = transposed ? source.outer_axis : source.inner_axis;
  const auto extent = [&](Axis axis) {
    return axis == Axis::kM ? schedule.tile_m : axis == Axis::kN ? schedule.tile_n / schedule.ctas : schedule.tile_k;
  };
  const int inner = extent(inner_axis);
  return {.type = source.type(),
          .outer_axis = outer_axis,
          .inner_axis = inner_axis,
          .outer = extent(outer_axis),
          .inner = inner,
          .swizzle = ir::WidestSwizzle(inner * static_cast<int>(source.ElementBytes()))};
}

class GemmBuilder : public KernelBuilder {
 public:
  GemmBuilder(const Contraction& contraction, const Schedule& schedule, const target::Target& target)
      : KernelBuilder("gemm", schedule, target, contraction.a.type(),
                      {.type = contraction.d.type(),
                       .c_type = contraction.c.type(),
                       .adds_c = contraction.beta != 0,
                       .bias = contraction.bias,
                       .scale = contraction.scale,
                       .promotes = Promotes(contraction, target),
                       .steps = contraction.epilogue(),
                       .orders_sums = ir::OrdersSums(contraction.epilogue(), contraction.numerics)}),
        contraction_(contraction),
        transposes_a_(Transposes(contraction.a, target)),
        transposes_b_(Transposes(contraction.b, target)) {}

 private:
  bool Stays(Operand operand) const override { return operand == Operand::kB && schedule().b_keep > 0; }
  bool IsTransposed(Operand operand) const { return operand == Operand::kA ? transposes_a_ : transposes_b_; }

  void AddOperandParams(Operand operand, bool by_tma, const SharedLayout& box) {
    if (by_tma) return AddParam(ir::MapOf(operand), box);
    AddParams({ir::BaseOf(operand), ir::PitchOf(operand), ir::StrideOf(operand)});
  }

  void AddOperands() override {
    a_tile_ = OperandTile(contraction_.a, schedule(), transposes_a_);
    b_tile_ = OperandTile(contraction_.b, schedule(), transposes_b_);
    if (Stays(Operand::kB)) {
      operands_ = AddChannel({.name = "a", .stages = schedule().stages, .tiles = {{"a", a_tile_}}});
      AddChannel({.name = "b", .stages = schedule().b_keep, .tiles = {{"b", b_tile_}}, .stays = true});
    } else {
      operands_ = AddChannel({.name = "ab", .stages = schedule().stages, .tiles = {{"a", a_tile_}, {"b", b_tile_}}});
    }
    AddOperandParams(Operand::kA, schedule().a_load == LoadPath::kTma, PartOf(a_tile_, Operand::kA));
    AddOperandParams(Operand::kB, schedule().b_load == LoadPath::kTma, PartOf(b_tile_, Operand::kB));
  }

  void AddOutputs() override {
    const bool bulk = schedule().d_store == StorePath::kTma;
    bulk ? AddMapsOfD() : AddOperandParams(Operand::kD, false, {});
    if (bulk && terms().HasMatrices()) AddParams({Binding::kPitchD, Binding::kStrideD});
    if (contraction_.beta != 0) AddOperandParams(Operand::kC, false, {});
    if (contraction_.bias != BiasAxis::kNone) AddParam(Binding::kBaseBias);
    AddFactorParams();
    AddEpilogueParams();
    AddParams({Binding::kM, Binding::kN, Binding::kK, Binding::kBatch, Binding::kAlpha});
    if (contraction_.beta != 0) AddParam(Binding::kBeta);
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
        if (PathOf(operand) != path || Stays(operand)) continue;
        LoadTile(b, operand, slot, {corner.row, column, depth, corner.batch});
      }
      b.Send({slot});
    });
  }

  // Where a tile begins in the operands.
  struct Start {
    ValueId row, column, depth, batch;

    ValueId Along(Axis axis) const { return axis == Axis::kM ? row : axis == Axis::kN ? column : depth; }
  };
  void LoadTile(Builder& b, Operand operand, ValueId slot, const Start& start) {
    const SharedLayout& tile = operand == Operand::kA ? a_tile_ : b_tile_;
    std::vector<ValueId> at = {slot, start.Along(tile.inner_axis), start.Along(tile.outer_axis), start.batch};
    // In a slot with a tile of A it comes second.
    const int index = operand == Operand::kB && !Stays(Operand::kB) ? 1 : 0;
    const bool halves = operand == Operand::kB && JoinsHalves();
    if (PathOf(operand) == LoadPath::kTma) {
      at[2] = PartStart(b, at[2], operand, PartOf(tile, operand).outer);
      b.TmaLoad(at, {.tile = index, .operand = operand, .to = ReachOf(operand), .halves = halves});
    } else {
      b.CopyLoad(at, {.tile = index, .operand = operand, .transposed = IsTransposed(operand), .halves = halves});
    }
  }

  void WriteKeptLoads(Builder& b) override {
    const ValueId zero = b.Constant(0);
    const ValueId column = KeptColumn(b);
    ForEach(b, KeptSlots(b), [&](ValueId block) {
      const ValueId slot = b.Put({}, {.channel = KeptChannel()});
      LoadTile(b, Operand::kB, slot, {zero, column, b.Mul({block, b.Constant(schedule().tile_k)}), zero});
      b.Send({slot});
    });
  }
  ValueId KeptSlots(Builder& b) const override { return BlocksOfTile(b); }

  void WriteProducts(Builder& b, ValueId accumulator, const Corner& corner) override {
    ForEachProduct(b, corner, [&](ValueId block, int sums) {
      const ValueId factors = LoadFactors(b, block);
      const ValueId slot = b.Take({}, {.channel = operands_});
      const ValueId later = IsLater(b, corner, block);
      if (Stays(Operand::kB)) {
        Multiply(b, accumulator, slot, KeptSlot(b, block), later, {.a_tile = 0, .b_tile = 0, .sums = sums});
      } else {
        Multiply(b, accumulator, slot, slot, later, {.sums = sums});
      }
      FinishProduct(b, slot, later, sums);
      return factors;
    });
  }

  std::vector<ValueId> StoreStart(Builder&, ValueId row, const Corner& corner) override { return {row, corner.batch}; }
  void WriteBulkStore(Builder& b, ValueId copy, ValueId column, const Corner&, const std::vector<ValueId>& start,
                      const ir::BulkStoreAttrs& attrs) override {
    b.TmaStore({copy, column, start[0], start[1]}, attrs);
  }

  int AccessWidthOf(Operand operand, int run) const override { return AccessWidth(contraction_.Of(operand), run); }

  const Contraction& contraction_;
  const bool transposes_a_, transposes_b_;
  SharedLayout a_tile_, b_tile_;
  int operands_ = -1;  // channel
};

}  // namespace

ir::Program BuildGemm(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  return GemmBuilder(contraction, schedule, target).Build();
}

}  // namespace laneshift::compiler
