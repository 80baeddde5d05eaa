// Sums that CUDA cores left in shared memory, as a fragment.
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {

// Columns after D's last one have no sums: the last one's stand for theirs, which nothing stores to D.
void RoleEmitter::LoadSums(const ir::Op& op) {
  const auto& attrs = op.As<ir::LoadSumsAttrs>();
  const Slot& slot = SlotOf(op);
  const ir::SharedLayout& layout = LayoutOf(slot, attrs.tile);
  const ir::FragmentLayout fragment{ir::FragmentKind::kMma16x8, cx_.program.Columns()};
  const bool transposed = cx_.program.row_axis == ir::Axis::kN;
  Value* base = Tile(slot, attrs.tile);
  Value* own = b_.CreateMul(cx_.warp, e_.C32(static_cast<uint32_t>(fragment.Rows())));
  const ElementIndex index(cx_, fragment, transposed ? e_.C32(0) : own, transposed ? own : e_.C32(0));
  Value* last = b_.CreateSub(cx_.Param(transposed ? ir::Binding::kM : ir::Binding::kN), e_.C32(1));
  Fragment sums{fragment, {}};
  for (int j = 0; j < fragment.Registers(); ++j) {
    Value* column = transposed ? index.Row(j) : index.Column(j);
    Value* row = transposed ? index.Column(j) : index.Row(j);
    Value* existing = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, column, last);
    Value* byte = b_.CreateMul(row, e_.C32(static_cast<uint32_t>(layout.ElementBytes())));
    Value* sum = nullptr;
    for (int copy = 0; copy < attrs.copies; ++copy) {
      Value* line = b_.CreateAdd(existing, e_.C32(static_cast<uint32_t>(copy * cx_.program.Columns())));
      Value* word = e_.LoadSharedWord(e_.Offset(base, e_.TileOffset(layout, line, byte)));
      Value* value = b_.CreateBitCast(word, e_.F32());
      sum = sum == nullptr ? value : b_.CreateFAdd(sum, value);
    }
    sums.values.push_back(sum);
  }
  fragments_[op.result] = sums;
}

}  // namespace laneshift::compiler
