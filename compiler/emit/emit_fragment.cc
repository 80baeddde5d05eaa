// The epilogue's operations on a fragment: its steps, and the store of D.
#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {

using ir::Op;

void RoleEmitter::ToF32(const Op& op) { fragments_[op.result] = EmitToF32(cx_, FragmentOf(op)); }

void RoleEmitter::Scale(const Op& op) {
  fragments_[op.result] = EmitScale(cx_, FragmentOf(op), cx_.Param(op.As<ir::ScaleAttrs>().binding));
}

void RoleEmitter::ScaleBy(const Op& op) {
  fragments_[op.result] = EmitScale(cx_, FragmentOf(op), ScaleFactorsOf(op).rows[0]);
}

void RoleEmitter::CombineVector(const Op& op) {
  fragments_[op.result] =
      EmitCombineVector(cx_, FragmentOf(op), op.As<ir::CombineVectorAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
}

void RoleEmitter::CombineMatrix(const Op& op) {
  fragments_[op.result] =
      EmitCombineMatrix(cx_, FragmentOf(op), op.As<ir::CombineMatrixAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
}

void RoleEmitter::PrefetchMatrix(const Op& op) {
  EmitPrefetchMatrix(cx_, op.As<ir::PrefetchMatrixAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2));
}

void RoleEmitter::Map(const Op& op) { fragments_[op.result] = EmitMap(cx_, FragmentOf(op), op.As<ir::MapAttrs>()); }

void RoleEmitter::Call(const Op& op) {
  fragments_[op.result] =
      EmitCall(cx_, FragmentOf(op), op.As<ir::CallAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
}

void RoleEmitter::Gate(const Op& op) { fragments_[op.result] = EmitGate(cx_, FragmentOf(op), op.As<ir::GateAttrs>()); }

void RoleEmitter::Reduce(const Op& op) {
  EmitReduce(cx_, FragmentOf(op), op.As<ir::ReduceAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
}

void RoleEmitter::StorePartialRow(const Op& op) {
  EmitStorePartialRow(cx_, FragmentOf(op), op.As<ir::StorePartialRowAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3),
                      Index(op, 4), Index(op, 5));
}

void RoleEmitter::Quantize(const Op& op) {
  constexpr size_t kScaleOfD = 4;
  Value* scale_d = op.operands.size() > kScaleOfD ? scale_factors_.at(op.operands[kScaleOfD]).rows[0] : nullptr;
  fragments_[op.result] =
      EmitQuantize(cx_, FragmentOf(op), op.As<ir::QuantizeAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3), scale_d);
}

Value* RoleEmitter::StageCopy(int index_of_buffer, Value* copy) {
  const ir::Buffer& buffer = cx_.program.buffers[index_of_buffer];
  Value* index = b_.CreateAdd(b_.CreateMul(WarpGroup(cx_, buffer.sharers).Number(), e_.C32(buffer.copies)), copy);
  return e_.Offset(cx_.Shared(buffer.offset), b_.CreateMul(index, e_.C32(buffer.layout.Bytes())));
}

void RoleEmitter::StageStore(const Op& op) {
  const auto& attrs = op.As<ir::StageAttrs>();
  EmitStageStore(cx_, FragmentOf(op), cx_.program.buffers[attrs.buffer], attrs.column,
                 StageCopy(attrs.buffer, Index(op, 1)));
}

// The copy is made by `store(from, map, coordinates)`, issued by one thread once all warps that share it have staged.
void RoleEmitter::StoreStaged(const Op& op,
                              const std::function<void(Value*, Value*, const std::vector<Value*>&)>& store) {
  const auto& attrs = op.As<ir::BulkStoreAttrs>();
  const ir::Buffer& buffer = cx_.program.buffers[attrs.buffer];
  Value* from = StageCopy(attrs.buffer, Index(op, 0));
  e_.FenceProxyAsyncShared();
  const WarpGroup group(cx_, buffer.sharers);
  group.Meet();
  std::vector<Value*> at;
  for (size_t i = 1; i < op.operands.size(); ++i) at.push_back(Index(op, static_cast<int>(i)));
  const auto bulk = [&] { store(from, cx_.Param(attrs.map), at); };
  if (attrs.rows != ir::RowMap::kGroups) {
    return e_.If(group.IsFirst(), [&] {
      bulk();
      e_.BulkCommit();
    });
  }
  Value* end = b_.CreateAdd(at[1], e_.C32(static_cast<uint32_t>(buffer.layout.outer)));
  e_.If(
      b_.CreateICmpULE(end, cx_.end_row), [&] { e_.If(group.IsFirst(), bulk); },
      [&] { EmitRowsOfBox(cx_, buffer, attrs, from, at[1], at[0], at[2]); });
  // Copies are counted when they are waited for, whichever way they leave.
  e_.If(group.IsFirst(), [&] { e_.BulkCommit(); });
}

void RoleEmitter::TmaStore(const Op& op) {
  StoreStaged(op, [&](Value* from, Value* map, const std::vector<Value*>& at) {
    e_.TmaStore3d(from, map, at[0], at[1], at[2]);
  });
}

void RoleEmitter::StorePixels(const Op& op) {
  StoreStaged(op, [&](Value* from, Value* map, const std::vector<Value*>& at) { e_.TmaStoreIm2col(from, map, at); });
}

void RoleEmitter::StoreRows(const Op& op) {
  const auto& attrs = op.As<ir::StoreRowsAttrs>();
  EmitStoreRows(cx_, cx_.program.buffers[attrs.buffer], attrs, StageCopy(attrs.buffer, Index(op, 0)), Index(op, 1),
                Index(op, 2), Index(op, 3));
}

void RoleEmitter::BulkWait(const Op& op) {
  const auto& attrs = op.As<ir::BulkWaitAttrs>();
  const ir::Buffer& buffer = cx_.program.buffers[attrs.buffer];
  const WarpGroup group(cx_, buffer.sharers);
  e_.If(group.IsFirst(), [&] { e_.BulkWaitRead(attrs.pending); });
  group.Meet();
}

void RoleEmitter::GlobalStore(const Op& op) {
  EmitGlobalStore(cx_, FragmentOf(op), op.As<ir::GlobalAttrs>(), Index(op, 1), Index(op, 2), Index(op, 3));
}

void RoleEmitter::PartialStore(const Op& op) { EmitPartialStore(cx_, FragmentOf(op), Index(op, 1), Index(op, 2)); }

void RoleEmitter::PartialArrive(const Op& op) {
  values_[op.result] = EmitPartialArrive(cx_, op.As<ir::ArriveAttrs>().sharers, Index(op, 0), Index(op, 1));
}

void RoleEmitter::PartialTotal(const Op& op) {
  const auto& attrs = op.As<ir::AccReadAttrs>();
  fragments_[op.result] =
      EmitPartialTotal(cx_, {attrs.fragment, attrs.columns}, Index(op, 0), Index(op, 1), Index(op, 2));
}

void RoleEmitter::StoreClusterSums(const Op& op) {
  EmitStoreClusterSums(cx_, Sums(SlotOf(op)), FragmentOf(op, 1), Index(op, 2));
}

void RoleEmitter::AddClusterSums(const Op& op) {
  const auto& attrs = op.As<ir::AccReadAttrs>();
  fragments_[op.result] = EmitAddClusterSums(cx_, Sums(SlotOf(op)), {attrs.fragment, attrs.columns}, Index(op, 1));
}

void RoleEmitter::PartialSum(const Op& op) {
  fragments_[op.result] = EmitPartialSum(cx_, FragmentOf(op), Index(op, 1), Index(op, 2), Index(op, 3));
}

}  // namespace laneshift::compiler
