// Accumulators, promoted accumulators and their scale factors.
#include <utility>

#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

// tcgen05.ld and st reach only the lanes 32*(warp mod 4)..+31; the lane is bits 31-16 of the address.
Value* RoleEmitter::LanesOfWarp() { return b_.CreateShl(b_.CreateAnd(cx_.warp, e_.C32(3)), 5 + 16); }

void RoleEmitter::AccRead(const Op& op) {
  const auto& attrs = op.As<ir::AccReadAttrs>();
  Value* address = b_.CreateAdd(b_.CreateAdd(Cells(SlotOf(op)), LanesOfWarp()), Index(op, 1));
  const ir::FragmentLayout layout{attrs.fragment, attrs.columns};
  fragments_[op.result] = {layout, e_.TensorLoad(address, layout, AccumulatorType())};
}

void RoleEmitter::AccRegisters(const Op& op) {
  const auto& attrs = op.As<ir::AccRegistersAttrs>();
  const ir::FragmentLayout layout{ir::FragmentKind::kMma16x8, attrs.columns};
  const int first = attrs.accumulator * AccumulatorRegisters() + attrs.column / 2;
  fragments_[op.result] = {layout, e_.ReadAccumulators(first, layout.Registers())};
}

void RoleEmitter::LoadScaleFactor(const Op& op) {
  scale_factors_[op.result] = {.rows = {EmitLoadScaleFactor(cx_, op.As<ir::ScaleAttrs>().binding)}};
}

void RoleEmitter::LoadScaleFactors(const Op& op) {
  const auto& attrs = op.As<ir::ScaleFactorsAttrs>();
  const ScaleFactors loaded =
      EmitLoadScaleFactors(cx_, attrs, {Index(op, 0), Index(op, 1), Index(op, 2)}, {Index(op, 3), Index(op, 4)});
  const ScaleSet& set = scale_sets_.at(attrs.set);
  for (size_t i = 0; i < loaded.rows.size(); ++i) e_.Store(set.rows[i], loaded.rows[i]);
  for (size_t i = 0; i < loaded.columns.size(); ++i) e_.Store(set.columns[i], loaded.columns[i]);
}

void RoleEmitter::ReadScaleFactors(const Op& op) {
  const auto& attrs = op.As<ir::ReadScaleFactorsAttrs>();
  const ScaleSet& set = scale_sets_.at(attrs.set);
  ScaleFactors factors;
  const auto read = [&](const Variable& value) {
    Value* loaded = e_.Load(value);
    return attrs.packed ? EmitPowerOfTwo(e_, b_.CreateBitCast(loaded, e_.I32())) : loaded;
  };
  for (const Variable& value : set.rows) factors.rows.push_back(read(value));
  for (const Variable& value : set.columns) factors.columns.push_back(read(value));
  scale_factors_[op.result] = std::move(factors);
}

void RoleEmitter::SlotScaleFactors(const Op& op) {
  const auto& attrs = op.As<ir::SlotScaleFactorsAttrs>();
  const Slot& slot = SlotOf(op);
  std::vector<Value*> of_b;
  const int tiles = attrs.b_vector ? ir::ScaleRunsOfTile(cx_.program.tile_n) : 1;
  for (int i = 0; i < tiles; ++i) of_b.push_back(Tile(slot, attrs.b_tile + i));
  scale_factors_[op.result] =
      EmitSlotScaleFactors(cx_, attrs, Tile(slot, attrs.a_tile), of_b, {Index(op, 1), Index(op, 2), Index(op, 3)});
}

void RoleEmitter::ClearPromoted(const Op&) {
  for (const Variable& sum : promoted_) e_.Store(sum, Zero());
}

void RoleEmitter::AddPromoted(const Op& op) { AddToPromoted(op, nullptr); }

void RoleEmitter::AddScaledPromoted(const Op& op) { AddToPromoted(op, &ScaleFactorsOf(op)); }

void RoleEmitter::AddToPromoted(const Op& op, const ScaleFactors* scale_factors) {
  const int column = op.As<ir::AddPromotedAttrs>().column;
  if (column / cx_.program.Columns() >= counted_blocks_) return;
  EmitAddPromoted(cx_, promoted_, FragmentOf(op), column, scale_factors);
}

void RoleEmitter::ReadPromoted(const Op& op) {
  fragments_[op.result] = EmitReadPromoted(cx_, promoted_, op.As<ir::ReadPromotedAttrs>());
}

}  // namespace laneshift::compiler
