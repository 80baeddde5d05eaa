// Accumulators, promoted accumulators and their scale factors.
#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

void RoleEmitter::AccRead(const Op& op) {
  const auto& attrs = op.As<ir::AccReadAttrs>();
  // tcgen05.ld reaches only the lanes 32*(warp mod 4)..+31; the lane is bits 31-16 of the address.
  Value* lanes = b_.CreateShl(b_.CreateAnd(cx_.warp, e_.C32(3)), 5 + 16);
  Value* address = b_.CreateAdd(b_.CreateAdd(Cells(SlotOf(op)), lanes), Index(op, 1));
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
  scale_factors_[op.result] = {1, {EmitLoadScaleFactor(cx_, op.As<ir::ScaleAttrs>().binding)}};
}

void RoleEmitter::LoadScaleFactors(const Op& op) {
  if (ahead_.contains(op.result)) return EmitScaleFactorsAhead(op);
  scale_factors_[op.result] =
      EmitLoadScaleFactors(cx_, op.As<ir::ScaleFactorsAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2), Index(op, 3));
}

// A loop over blocks of K whose body loads scale factors loads those of the first block here, and in each iteration
// those of the next: a load takes longer than the products of a block.
void RoleEmitter::LoadFirstScaleFactors(const Op& loop) {
  for (const Op& op : loop.body) {
    if (op.kind != OpKind::kLoadScaleFactors) continue;
    const std::optional<int64_t> distance = DistanceFrom(loop, op.operands[2]);
    if (!distance) continue;
    Value* run = b_.CreateAdd(Index(loop, 0), e_.C32(static_cast<uint32_t>(*distance)));
    const ScaleFactors first =
        EmitLoadScaleFactors(cx_, op.As<ir::ScaleFactorsAttrs>(), Index(op, 0), Index(op, 1), run, Index(op, 3));
    ScaleFactorsAhead& ahead = ahead_[op.result];
    ahead.step = loop.As<ir::ForAttrs>().step;
    for (Value* value : first.values) ahead.next.push_back(e_.NewVariable(e_.F32(), value));
  }
}

// The constant difference of `value` and the loop's own index, if `value` is that index or the index plus a constant.
std::optional<int64_t> RoleEmitter::DistanceFrom(const Op& loop, ValueId value) {
  if (value == loop.result) return 0;
  std::map<ValueId, int64_t> constants;
  for (const Op& op : loop.body) {
    if (op.kind == OpKind::kConst) constants[op.result] = op.As<ir::ConstAttrs>().value;
    if (op.kind != OpKind::kAdd || op.result != value || op.operands[0] != loop.result) continue;
    const auto found = constants.find(op.operands[1]);
    if (found != constants.end()) return found->second;
  }
  return std::nullopt;
}

void RoleEmitter::EmitScaleFactorsAhead(const Op& op) {
  const auto& attrs = op.As<ir::ScaleFactorsAttrs>();
  const auto& [next, step] = ahead_.at(op.result);
  ScaleFactors own{attrs.runs, {}};
  for (const Variable& variable : next) own.values.push_back(e_.Load(variable));
  scale_factors_[op.result] = own;
  Value* run = b_.CreateAdd(Index(op, 2), e_.C32(static_cast<uint32_t>(step)));
  const ScaleFactors loaded = EmitLoadScaleFactors(cx_, attrs, Index(op, 0), Index(op, 1), run, Index(op, 3));
  for (size_t i = 0; i < next.size(); ++i) e_.Store(next[i], loaded.values[i]);
}

void RoleEmitter::ClearPromoted(const Op&) {
  for (const Variable& sum : promoted_) e_.Store(sum, Zero());
}

void RoleEmitter::AddPromoted(const Op& op) {
  EmitAddPromoted(cx_, promoted_, FragmentOf(op), op.As<ir::AddPromotedAttrs>().column, nullptr);
}

void RoleEmitter::AddScaledPromoted(const Op& op) {
  EmitAddPromoted(cx_, promoted_, FragmentOf(op), op.As<ir::AddPromotedAttrs>().column, &ScaleFactorsOf(op));
}

void RoleEmitter::ReadPromoted(const Op& op) {
  fragments_[op.result] = EmitReadPromoted(cx_, promoted_, op.As<ir::ReadPromotedAttrs>());
}

}  // namespace laneshift::compiler
