#include "compiler/emit/emit_role.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "ir/row_steps.h"
#include "llvm/IR/DebugInfoMetadata.h"

namespace laneshift::compiler {

using ir::Op;
using ir::OpKind;
using ir::Role;
using ir::RoleKind;

void EmitRole(RoleContext& cx, const Role& role) { RoleEmitter(cx, role).Emit(); }

namespace {

// While an op is emitted, instructions have its line.
class OpLocation {
 public:
  OpLocation(const RoleContext& cx, const Op& op) : b_(cx.e.ir()), before_(b_.getCurrentDebugLocation()) {
    if (cx.lines == nullptr) return;
    llvm::DISubprogram* kernel = b_.GetInsertBlock()->getParent()->getSubprogram();
    b_.SetCurrentDebugLocation(
        llvm::DILocation::get(b_.getContext(), static_cast<unsigned>(cx.lines->at(&op)), 0, kernel));
  }
  ~OpLocation() { b_.SetCurrentDebugLocation(before_); }
  OpLocation(const OpLocation&) = delete;
  OpLocation& operator=(const OpLocation&) = delete;

 private:
  llvm::IRBuilder<>& b_;
  const llvm::DebugLoc before_;
};

}  // namespace

void RoleEmitter::EmitOp(const Op& op) {
  const OpLocation location(cx_, op);
  switch (op.kind) {
#define LS_EMIT_kAny(Name) return Name(op);
#define LS_EMIT_kLowered(Name) return Name(op);
#define LS_EMIT_kScheduled(Name) LS_CHECK(false, "a channel operation was not lowered: ", #Name);
#define OP(Name, mnemonic, operands, result, stages, ...) \
  case OpKind::k##Name:                                   \
    LS_EMIT_##stages(Name)
#include "ir/ops.def"
#undef LS_EMIT_kAny
#undef LS_EMIT_kLowered
#undef LS_EMIT_kScheduled
  }
}

void RoleEmitter::Emit() {
  Value* const shared = cx_.shared;
  counted_blocks_ = cx_.blocks;
  counted_columns_ = cx_.program.Columns();
  const int accumulators = AccumulatorsOf(role_.body);
  if (accumulators > 0) {
    e_.DeclareAccumulators(accumulators * AccumulatorRegisters(), AccumulatorType());
    // In a cluster this address depends on the CTA's rank. ptxas would read the rank for each block of K, and the MMAs
    // would wait; what comes from another lane it keeps.
    Value* address = e_.BroadcastLane0(e_.SharedAddress(cx_.shared));
    cx_.shared = b_.CreateIntToPtr(address, cx_.shared->getType());
    std::map<ir::ValueId, int> channel_of;
    CreateFirstWords(role_.body, channel_of);
    int words = 0;
    CreateMetadata(role_.body, words);
    if (words > 0) e_.DeclareMetadata(words);
  }
  CreateCursors(role_.body);
  CreatePromoted(role_.body);
  CreateScaleSets(role_.body);
  if (role_.elected) {
    e_.IfElected([&] { EmitBody(role_.body); });
  } else {
    EmitBody(role_.body);
  }
  cx_.shared = shared;
}

void RoleEmitter::CreateCursors(const std::vector<Op>& body) {
  std::map<ir::ValueId, CursorState*> of_slot;
  for (const Op& op : body) {
    if (op.kind == OpKind::kCursor) {
      const auto& attrs = op.As<ir::CursorAttrs>();
      const auto [cursor, is_new] = cursors_.try_emplace({attrs.channel, attrs.trail});
      if (is_new) cursor->second = {e_.NewVariable(e_.I32(), e_.C32(0)), e_.NewVariable(e_.I32(), e_.C32(0))};
      of_slot[op.result] = &cursor->second;
    }
    if (op.kind == OpKind::kBarrierPeek) {
      std::optional<Variable>& full = of_slot.at(op.operands[0])->full;
      if (!full) full = e_.NewVariable(b_.getInt1Ty(), e_.False());
    }
    CreateCursors(op.body);
  }
}

int RoleEmitter::AccumulatorsOf(const std::vector<Op>& body) {
  int count = 0;
  for (const Op& op : body) {
    if (op.kind == OpKind::kMmaRegisters) count = std::max(count, op.As<ir::MmaAttrs>().accumulator + 1);
    count = std::max(count, AccumulatorsOf(op.body));
  }
  return count;
}

void RoleEmitter::CreatePromoted(const std::vector<Op>& body) {
  for (const Op& op : body) {
    CreatePromoted(op.body);
    if (op.kind != OpKind::kClearPromoted || !promoted_.empty()) continue;
    const ir::FragmentLayout whole{op.As<ir::ClearPromotedAttrs>().fragment, cx_.blocks * cx_.program.Columns()};
    for (int i = 0; i < whole.Registers(); ++i) promoted_.push_back(e_.NewVariable(e_.F32(), Zero()));
  }
}

void RoleEmitter::CreateScaleSets(const std::vector<Op>& body) {
  for (const Op& op : body) {
    CreateScaleSets(op.body);
    if (op.kind != OpKind::kLoadScaleFactors) continue;
    const auto& attrs = op.As<ir::ScaleFactorsAttrs>();
    ScaleSet& set = scale_sets_[attrs.set];
    const auto create = [&](std::vector<Variable>& values, int count) {
      while (values.size() < static_cast<size_t>(count)) values.push_back(e_.NewVariable(e_.F32(), Zero()));
    };
    create(set.rows, ScaleRowsOf(attrs.fragment));
    create(set.columns, attrs.runs);
  }
}

void RoleEmitter::Const(const Op& op) { values_[op.result] = e_.C32(op.As<ir::ConstAttrs>().value); }

void RoleEmitter::Param(const Op& op) { values_[op.result] = cx_.Param(op.As<ir::ParamAttrs>().binding); }

void RoleEmitter::ClusterIndex(const Op& op) {
  values_[op.result] = cx_.cluster->Index(op.As<ir::ClusterIndexAttrs>().axis);
}

void RoleEmitter::Add(const Op& op) { values_[op.result] = b_.CreateAdd(Index(op, 0), Index(op, 1)); }

void RoleEmitter::Sub(const Op& op) { values_[op.result] = b_.CreateSub(Index(op, 0), Index(op, 1)); }

void RoleEmitter::Mul(const Op& op) { values_[op.result] = b_.CreateMul(Index(op, 0), Index(op, 1)); }

void RoleEmitter::CeilDiv(const Op& op) {
  // Not (a + b - 1) / b: a may be near the largest index.
  Value* quotient = b_.CreateUDiv(Index(op, 0), Index(op, 1));
  Value* rest = b_.CreateICmpNE(b_.CreateURem(Index(op, 0), Index(op, 1)), e_.C32(0));
  values_[op.result] = b_.CreateAdd(quotient, b_.CreateZExt(rest, e_.I32()));
}

void RoleEmitter::Div(const Op& op) { values_[op.result] = b_.CreateUDiv(Index(op, 0), Index(op, 1)); }

void RoleEmitter::Rem(const Op& op) { values_[op.result] = b_.CreateURem(Index(op, 0), Index(op, 1)); }

void RoleEmitter::Less(const Op& op) { values_[op.result] = b_.CreateICmpULT(Index(op, 0), Index(op, 1)); }

void RoleEmitter::Anew(const Op& op) { values_[op.result] = e_.Anew(Index(op, 0)); }

void RoleEmitter::SlotStage(const Op& op) { values_[op.result] = SlotOf(op).stage; }

void RoleEmitter::WarpRow(const Op& op) {
  values_[op.result] = b_.CreateMul(cx_.warp, e_.C32(op.As<ir::WarpRowAttrs>().rows));
}

void RoleEmitter::RowBorderMask(const Op& op) {
  values_[op.result] = EmitRowBorderMask(cx_, op.As<ir::RowBorderMaskAttrs>().columns, Index(op, 0));
}

void RoleEmitter::If(const Op& op) {
  e_.If(Index(op, 0), [&] { EmitBody(op.body); });
}

void RoleEmitter::For(const Op& op) { op.CountsRows() ? ForRows(op) : Loop(op, Index(op, 1)); }

void RoleEmitter::Loop(const Op& op, Value* end) {
  e_.For(Index(op, 0), end, op.As<ir::ForAttrs>().step, [&](Value* index) {
    values_[op.result] = index;
    EmitBody(op.body);
  });
}

// A loop for each number of blocks of rows that have some that count, of which one has iterations: a condition around
// the MMAs of one loop would have ptxas wait for each of them. The loops follow each other, since what they leave in
// registers would be copied where branches meet. The first block of a single warpgroup has rows that count, unless the
// tile lies outside of its group: it is multiplied in any case.
void RoleEmitter::ForRows(const Op& op) {
  if (cx_.program.row_axis == ir::Axis::kN) return ForRowsAlongN(op);
  const int most = cx_.blocks, least = role_.warps == ir::kWarpgroupWarps ? 1 : 0;
  const int rows = cx_.target.mma.most_rows, step = rows * role_.warps / ir::kWarpgroupWarps;
  Value* own = b_.CreateMul(b_.CreateLShr(cx_.warp, 2), e_.C32(rows));
  // Signed: of a tile outside the rows that are left are fewer than none.
  const auto counts = [&](int block) {
    return b_.CreateICmpSLT(b_.CreateAdd(own, e_.C32(block * step)), Index(op, 2));
  };
  for (int blocks = most; blocks >= least; --blocks) {
    Value* here = blocks == least ? e_.True() : counts(blocks - 1);
    if (blocks < most) here = b_.CreateAnd(here, b_.CreateNot(counts(blocks)));
    counted_blocks_ = blocks;
    Loop(op, b_.CreateSelect(here, Index(op, 1), Index(op, 0)));
  }
  counted_blocks_ = most;
}

// Where columns of a product are rows of D, a loop for each width, of which one is executed. Sums are not promoted, so
// that no registers are copied where the branches meet.
void RoleEmitter::ForRowsAlongN(const Op& op) {
  const std::vector<int> widths = ir::ProductWidths(cx_.program.Columns());
  const std::function<void(size_t)> emit = [&](size_t i) {
    const auto loop = [&] {
      counted_columns_ = widths[i];
      Loop(op, Index(op, 1));
    };
    if (i + 1 == widths.size()) return loop();
    e_.If(b_.CreateICmpSGT(Index(op, 2), e_.C32(static_cast<uint32_t>(widths[i + 1]))), loop, [&] { emit(i + 1); });
  };
  emit(0);
  counted_columns_ = widths.front();
}

}  // namespace laneshift::compiler
