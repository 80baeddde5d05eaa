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
  const int first = attrs.sums * AccumulatorRegisters() + attrs.column / 2;
  fragments_[op.result] = {layout, e_.ReadAccumulators(first, layout.Registers())};
}

void RoleEmitter::LoadFactor(const Op& op) {
  factors_[op.result] = {1, {EmitLoadFactor(cx_, op.As<ir::ScaleAttrs>().binding)}};
}

void RoleEmitter::LoadFactors(const Op& op) {
  if (ahead_.contains(op.result)) return EmitFactorsAhead(op);
  factors_[op.result] =
      EmitLoadFactors(cx_, op.As<ir::FactorsAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2), Index(op, 3));
}

// A loop over blocks of K whose body loads scale factors loads those of the first block here, and in each iteration
// those of the next: a load takes longer than the products of a block.
void RoleEmitter::LoadFirstFactors(const Op& loop) {
  for (const Op& op : loop.body) {
    if (op.kind != OpKind::kLoadFactors) continue;
    const std::optional<int64_t> behind = DistanceFrom(loop, op.operands[2]);
    if (!behind) continue;
    Value* run = b_.CreateAdd(Index(loop, 0), e_.C32(static_cast<uint32_t>(*behind)));
    const Factors first =
        EmitLoadFactors(cx_, op.As<ir::FactorsAttrs>(), Index(op, 0), Index(op, 1), run, Index(op, 3));
    FactorsAhead& ahead = ahead_[op.result];
    ahead.turn = loop.As<ir::ForAttrs>().step;
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

void RoleEmitter::EmitFactorsAhead(const Op& op) {
  const auto& attrs = op.As<ir::FactorsAttrs>();
  const auto& [next, turn] = ahead_.at(op.result);
  Factors own{attrs.runs, {}};
  for (const Variable& variable : next) own.values.push_back(e_.Load(variable));
  factors_[op.result] = own;
  Value* run = b_.CreateAdd(Index(op, 2), e_.C32(static_cast<uint32_t>(turn)));
  const Factors loaded = EmitLoadFactors(cx_, attrs, Index(op, 0), Index(op, 1), run, Index(op, 3));
  for (size_t i = 0; i < next.size(); ++i) e_.Store(next[i], loaded.values[i]);
}

void RoleEmitter::ClearSums(const Op&) {
  for (const Variable& sum : sums_) e_.Store(sum, Zero());
}

void RoleEmitter::AddSums(const Op& op) {
  EmitAddSums(cx_, sums_, FragmentOf(op), op.As<ir::AddSumsAttrs>().column, nullptr);
}

void RoleEmitter::AddScaledSums(const Op& op) {
  EmitAddSums(cx_, sums_, FragmentOf(op), op.As<ir::AddSumsAttrs>().column, &FactorsOf(op));
}

void RoleEmitter::ReadSums(const Op& op) {
  fragments_[op.result] = EmitReadSums(cx_, sums_, op.As<ir::ReadSumsAttrs>());
}

}  // namespace laneshift::compiler
