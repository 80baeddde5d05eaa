// The work of a CTA: the output tiles that it computes.
#include <algorithm>

#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {

using ir::Op;
using ir::Side;
using ir::ValueId;

namespace {

// Whether the op, or one in its body, has one of the `count` values from `first` on as an operand.
bool Names(const Op& op, ValueId first, ValueId count) {
  const auto named = [&](ValueId id) { return id - first < count; };
  return std::any_of(op.operands.begin(), op.operands.end(), named) ||
         std::any_of(op.body.begin(), op.body.end(), [&](const Op& inner) { return Names(inner, first, count); });
}

}  // namespace

void RoleEmitter::Work(const Op& op) {
  const bool parts = op.As<ir::WorkAttrs>().source == ir::WorkSource::kPartsOfK;
  const bool cuts = !parts && op.operands.size() > ir::kWorkTileOperands;
  const ValueId first_block = op.result + ir::kWorkTileArguments + 1;
  const bool scale_blocks =
      ir::HasGroups(op.As<ir::WorkAttrs>().source) &&
      std::any_of(op.body.begin(), op.body.end(), [&](const Op& inner) { return Names(inner, first_block, 1); });
  WorkLoop work(cx_, op.As<ir::WorkAttrs>(),
                {.rows = Index(op, 0),
                 .columns = Index(op, 1),
                 .batches = Index(op, 2),
                 .blocks = cuts ? Index(op, ir::kWorkTileOperands) : nullptr,
                 .block = parts ? Index(op, ir::kWorkTileOperands) : nullptr,
                 .scale_blocks = scale_blocks});
  work_ = &work;
  work.ForEach([&](const WorkLoop::Unit& unit) {
    if (cuts) {
      values_[op.result + 3] = unit.k_begin;
      values_[op.result + 4] = unit.k_end;
      values_[op.result + 5] = unit.number;
      values_[op.result + 6] = unit.slice;
      values_[op.result + 7] = unit.slices;
      // The sum over slices takes as many registers as the accumulators.
      if (role_.kind == ir::RoleKind::kMath) e_.ClearAccumulators();
    }
    if (parts) {
      values_[op.result + ir::kWorkTileArguments] = unit.first_row;
      values_[op.result + ir::kWorkTileArguments + 1] = b_.CreateSub(unit.end_row, unit.first_row);
      values_[op.result + ir::kWorkTileArguments + 2] = unit.k_blocks;
      values_[op.result + ir::kWorkTileArguments + 3] = unit.k_passed;
    } else if (unit.group != nullptr) {
      values_[op.result + ir::kWorkTileArguments] = unit.first_row;
      values_[first_block] = unit.first_block;
      cx_.end_row = unit.end_row;
    }
    EmitUnit(op, work, unit);
  });
  work_ = nullptr;
  cx_.end_row = nullptr;
}

// The position of a tile takes several divisions. They come where it is first needed: products do not wait for them,
// unless it decides how many rows they have. Then it is found before a ping-pong role takes its turn.
void RoleEmitter::EmitUnit(const Op& op, const WorkLoop& work, const WorkLoop::Unit& unit) {
  bool placed = false;
  const bool in_groups = ir::HasGroups(op.As<ir::WorkAttrs>().source);
  const ValueId in_group = op.result + ir::kWorkTileArguments + 2;
  const bool counts_rows = ir::AnyOp(op.body, [](const Op& inner) { return inner.CountsRows(); });
  const auto names_place = [&](const Op& inner) {
    return Names(inner, op.result, ir::kWorkTileArguments) || (in_groups && Names(inner, in_group, 2));
  };
  for (const Op& inner : op.body) {
    if (!placed && (counts_rows || names_place(inner))) {
      placed = true;
      const WorkLoop::Place place = work.At(unit);
      values_[op.result] = place.row;
      values_[op.result + 1] = place.column;
      values_[op.result + 2] = place.batch;
      if (in_groups) {
        values_[in_group] = place.rows;
        values_[in_group + 1] = place.first_row;
        if (work.DividesRows()) {
          Value* end = b_.CreateAdd(unit.first_row, b_.CreateAdd(place.first_row, place.rows));
          cx_.end_row = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, unit.end_row);
        }
      }
    }
    EmitOp(inner);
  }
}

void RoleEmitter::WorkNext(const Op& op) { work_->Steal(e_.ReadClcResponse(ClcResponseAddress(SlotOf(op)))); }

void RoleEmitter::WorkColumn(const Op& op) {
  values_[op.result] = b_.CreateURem(WorkLoop::OfCluster(cx_, e_.CtaIndex()), Index(op, 0));
}

void RoleEmitter::WorkRequest(const Op& op) {
  const Slot& slot = SlotOf(op);
  e_.If(cx_.cluster->IsFirst(), [&] {
    e_.RequestCluster(ClcResponseAddress(slot), Barrier(slot, Side::kFull), cx_.program.ClusterSize() > 1);
  });
}

Value* RoleEmitter::ClcResponseAddress(const Slot& slot) {
  return e_.Offset(cx_.Shared(ChannelOf(slot).slots_offset), b_.CreateMul(slot.stage, e_.C32(ir::kClcResponseBytes)));
}

}  // namespace laneshift::compiler
