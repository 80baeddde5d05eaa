#include "compiler/plan/constant_indices.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer_math.h"

namespace laneshift::compiler {
namespace {

using ir::OpKind;

}  // namespace

void ConstantIndices::Note(const ir::Op& op) {
  if (op.kind == OpKind::kConst) return Set(op.result, op.As<ir::ConstAttrs>().value);
  if (op.kind == OpKind::kParam) return Set(op.result, numbers_.SizeOf(op.As<ir::ParamAttrs>().binding));
  // Of CTAs that share a tile the first one writes most.
  if (op.kind == OpKind::kClusterIndex && op.As<ir::ClusterIndexAttrs>().axis == ir::Axis::kK) return Set(op.result, 0);
  const bool sum = op.kind == OpKind::kAdd || op.kind == OpKind::kSub;
  const bool quotient = op.kind == OpKind::kCeilDiv || op.kind == OpKind::kDiv || op.kind == OpKind::kRem;
  if (!sum && !quotient && op.kind != OpKind::kMul) return;
  const auto a = Find(op.operands[0]);
  const auto b = Find(op.operands[1]);
  if (!a || !b) return;
  if (op.kind == OpKind::kAdd) Set(op.result, *a + *b);
  if (op.kind == OpKind::kSub) Set(op.result, *a - *b);
  if (op.kind == OpKind::kMul) Set(op.result, *a * *b);
  if (op.kind == OpKind::kCeilDiv) Set(op.result, base::CeilDiv(*a, *b));
  if (op.kind == OpKind::kDiv) Set(op.result, *a / *b);
  if (op.kind == OpKind::kRem) Set(op.result, *a % *b);
}

void ConstantIndices::SetPartOfK(const ir::Op& work) {
  const int64_t length = numbers_.contraction().Depth();
  Set(work.result + ir::kWorkTileArguments + 1, length);
  const int64_t blocks = base::CeilDiv(length, At(work.operands[ir::kWorkTileOperands]));
  Set(work.result + ir::kWorkTileArguments + 2, blocks);
  Set(work.result + ir::kWorkTileArguments + 3, (work.As<ir::WorkAttrs>().pingpong_roles - 1) * blocks);
}

int64_t ConstantIndices::At(ir::ValueId value) const {
  const auto index = Find(value);
  LS_CHECK(index.has_value(), "value ", value, " varies between iterations");
  return *index;
}

int64_t ConstantIndices::Iterations(const ir::Op& loop) const {
  LS_CHECK(KnowsIterations(loop), "a loop whose length varies between iterations");
  const int64_t span = At(loop.operands[1]) - At(loop.operands[0]);
  return std::max<int64_t>(0, base::CeilDiv(span, loop.As<ir::ForAttrs>().step));
}

}  // namespace laneshift::compiler
