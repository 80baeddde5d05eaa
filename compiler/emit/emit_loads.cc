// Tiles of operands into rings, and the copies and reductions of the packing and reduction kernels.
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_role.h"
#include "ir/row_steps.h"

namespace laneshift::compiler {
namespace {

// The first of the rows that a thread copies: those of the warps alternate, so that each of them issues as many.
Value* FirstCopiedRow(Emitter& e, const RoleContext& cx, int at_once) {
  auto& b = e.ir();
  Value* thread = cx.thread;
  if (const int warps = cx.threads / 32; warps > 1) {
    Value* lane = b.CreateMul(b.CreateAnd(thread, e.C32(31)), e.C32(static_cast<uint32_t>(warps)));
    thread = b.CreateAdd(lane, b.CreateLShr(thread, e.C32(5)));
  }
  return b.CreateMul(thread, e.C32(static_cast<uint32_t>(at_once)));
}

}  // namespace

using ir::Op;
using ir::SharedLayout;
using ir::Side;

void RoleEmitter::TmaLoad(const Op& op) {
  const auto& attrs = op.As<ir::LoadAttrs>();
  const Slot& slot = SlotOf(op);
  const SharedLayout& layout = LayoutOf(slot, attrs.tile);
  Value* tile = Tile(slot, attrs.tile);
  Value* map = cx_.Param(attrs.Map());
  const int rows = RowsOfBox(attrs.Map());
  const int rows_of_part = attrs.whole ? layout.outer : layout.outer / cx_.program.Parts(attrs.to);
  Value* part = attrs.whole ? nullptr : PartOffset(attrs.to, layout, rows_of_part);
  if (part != nullptr) tile = e_.Offset(tile, part);
  const auto copy_rows = [&](int first) {
    Value* outer = first == 0 ? Index(op, 2) : b_.CreateAdd(Index(op, 2), e_.C32(static_cast<uint32_t>(first)));
    for (int column = 0; column < layout.Columns(); ++column) {
      Value* inner = b_.CreateAdd(Index(op, 1), e_.C32(column * layout.ColumnElements()));
      std::vector<Value*> at = {inner, outer, Index(op, 3)};
      // A dimension of two between k and the columns: the rows of the box alternate between the halves.
      if (attrs.halves) at.insert(at.begin() + 1, e_.C32(0));
      e_.TmaLoadTile(e_.Offset(tile, e_.C32(column * layout.ColumnBytes() + first * layout.Span())),
                     BarrierOfLoads(slot), map, at, cx_.cluster->CopyMask(attrs.to));
    }
  };
  const auto copy = [&] {
    if (!op.LeavesOutRows()) return copy_rows(0);
    Value* count = RowsMultiplied(Index(op, ir::kTmaLoadOperands));
    Value* before = part == nullptr ? e_.C32(0) : b_.CreateMul(PlaceAlong(attrs.to), e_.C32(rows_of_part));
    for (int first = 0; first < rows_of_part; first += rows) {
      Value* row = b_.CreateAdd(before, e_.C32(static_cast<uint32_t>(first)));
      e_.If(b_.CreateICmpULT(row, count), [&] { copy_rows(first); });
    }
  };
  attrs.whole ? e_.If(b_.CreateICmpEQ(PlaceAlong(attrs.to), e_.C32(0)), copy) : copy();
}

// Of the rows of a tile of a group that count, those that are multiplied.
Value* RoleEmitter::RowsMultiplied(Value* rows) {
  const int least = ir::LeastRows(cx_.program.tile_m, cx_.program.row_axis == ir::Axis::kN);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, rows, e_.C32(static_cast<uint32_t>(least)));
}

// Of the slot's tile of A, whose boxes are loaded as far as rows of it are multiplied.
Value* RoleEmitter::BytesLeftOut(const Slot& slot, Value* rows) {
  const SharedLayout& layout = LayoutOf(slot, 0);
  const auto constant = [&](int value) { return e_.C32(static_cast<uint32_t>(value)); };
  const int box = RowsOfBox(ir::Binding::kMapA);
  Value* loaded = b_.CreateMul(compiler::CeilDiv(e_, RowsMultiplied(rows), box), constant(box));
  loaded = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, loaded, constant(layout.outer));
  return b_.CreateMul(b_.CreateSub(constant(layout.outer), loaded), constant(layout.CopiedBytes() / layout.outer));
}

// Each thread loads the indices of its rows once a tile, and keeps them for all blocks of K.
void RoleEmitter::FindRows(const Op& op) {
  const auto& attrs = op.As<ir::FindRowsAttrs>();
  Value* own = FirstCopiedRow(e_, cx_, attrs.at_once);
  const int step = attrs.at_once * cx_.threads;
  std::vector<Value*> rows;
  for (int first = 0; first < attrs.rows; first += step) {
    for (int i = 0; i < attrs.at_once; ++i) {
      Value* row = b_.CreateAdd(Index(op, 0), b_.CreateAdd(own, e_.C32(static_cast<uint32_t>(first + i))));
      rows.push_back(FindRowOfA(cx_, row, e_.C32(~0u)).row);
    }
  }
  rows_[op.result] = std::move(rows);
}

void RoleEmitter::LoadRows(const Op& op) {
  const auto& attrs = op.As<ir::RowLoadAttrs>();
  const Slot& slot = SlotOf(op);
  const SharedLayout& layout = LayoutOf(slot, attrs.tile);
  const std::vector<Value*>& rows = rows_.at(op.operands[1]);
  Value* tile = Tile(slot, attrs.tile);
  if (Value* part = PartOffset(attrs.to, layout, attrs.rows)) tile = e_.Offset(tile, part);
  const int step = attrs.at_once * cx_.threads;
  Value* own = FirstCopiedRow(e_, cx_, attrs.at_once);
  const auto copy = [&](int first) {
    Value* place = e_.Offset(tile, b_.CreateMul(own, e_.C32(static_cast<uint32_t>(layout.Span()))));
    const auto begin = rows.begin() + first / cx_.threads;
    for (int column = 0; column < layout.Columns(); ++column) {
      std::vector<Value*> at = {b_.CreateAdd(Index(op, 2), e_.C32(column * layout.ColumnElements()))};
      at.insert(at.end(), begin, begin + attrs.at_once);
      const int offset = column * layout.ColumnBytes() + first * layout.Span();
      e_.TmaLoadRows(e_.Offset(place, e_.C32(static_cast<uint32_t>(offset))), BarrierOfLoads(slot),
                     cx_.Param(ir::Binding::kMapA), at, cx_.cluster->CopyMask(attrs.to));
    }
  };
  for (int first = 0; first < attrs.rows; first += step) {
    if (first + step <= attrs.rows) {
      copy(first);
    } else {
      e_.If(b_.CreateICmpULT(own, e_.C32(static_cast<uint32_t>(attrs.rows - first))), [&] { copy(first); });
    }
  }
}

// One copy for each column of the tile, or for all of them where they overlap.
void RoleEmitter::LoadPixelBlock(const Op& op) {
  const auto& attrs = op.As<ir::PixelLoadAttrs>();
  const Slot& slot = SlotOf(op);
  const SharedLayout& layout = LayoutOf(slot, attrs.tile);
  std::vector<Value*> at;
  for (size_t i = 1; i < op.operands.size(); ++i) at.push_back(Index(op, static_cast<int>(i)));
  Value* first = at[0];
  for (int box = 0; box < layout.Boxes(); ++box) {
    at[0] = b_.CreateAdd(first, e_.C32(static_cast<uint32_t>(box * layout.ColumnElements())));
    Value* to = e_.Offset(Tile(slot, attrs.tile), e_.C32(static_cast<uint32_t>(box * layout.ColumnBytes())));
    e_.TmaLoadTile(to, BarrierOfLoads(slot), cx_.Param(attrs.map), at, cx_.cluster->CopyMask(attrs.to));
  }
}

// One copy for each column of the tile; the box's rows from `row` on.
void RoleEmitter::LoadPixels(const Op& op) {
  const auto& attrs = op.As<ir::PixelLoadAttrs>();
  if (attrs.block) return LoadPixelBlock(op);
  const Slot& slot = SlotOf(op);
  const SharedLayout& layout = LayoutOf(slot, attrs.tile);
  const size_t dimensions = (op.operands.size() - 3) / 2;
  std::vector<Value*> at(dimensions + 2), offsets(dimensions);
  for (size_t d = 0; d <= dimensions; ++d) at[d + 1] = Index(op, static_cast<int>(d) + 2);
  for (size_t d = 0; d < dimensions; ++d) offsets[d] = Index(op, static_cast<int>(dimensions + d) + 3);
  Value* part = PartOffset(attrs.to, layout, RowsOfBox(attrs.map));
  const bool every = attrs.column == ir::PixelLoadAttrs::kEveryColumn;
  const int first = every ? 0 : attrs.column, end = every ? layout.Columns() : attrs.column + 1;
  for (int column = first; column < end; ++column) {
    at[0] = b_.CreateAdd(Index(op, 1), e_.C32((column - first) * layout.ColumnElements()));
    Value* to = e_.Offset(Tile(slot, attrs.tile), e_.C32(column * layout.ColumnBytes() + attrs.row * layout.Span()));
    if (part != nullptr) to = e_.Offset(to, part);
    e_.TmaLoadIm2col(to, BarrierOfLoads(slot), cx_.Param(attrs.map), at, offsets, cx_.cluster->CopyMask(attrs.to));
  }
}

int RoleEmitter::RowsOfBox(ir::Binding map) const { return cx_.program.FindParam(map)->box.outer; }

// Bytes from the start of a column of a tile to the part of it, of `rows` rows, that this CTA loads, or nullptr for the
// start.
Value* RoleEmitter::PartOffset(ir::MulticastScope to, const SharedLayout& layout, int rows) {
  if (to == ir::MulticastScope::kOwn) return nullptr;
  return b_.CreateMul(PlaceAlong(to), e_.C32(rows * layout.Span()));
}

// Which of the CTAs that a multicast goes to this one is.
Value* RoleEmitter::PlaceAlong(ir::MulticastScope to) {
  if (to == ir::MulticastScope::kN) return cx_.cluster->Index(ir::Axis::kN);
  return b_.CreateUDiv(cx_.cluster->Index(ir::Axis::kM), e_.C32(cx_.program.ctas));
}

void RoleEmitter::CopyLoad(const Op& op) {
  const auto& attrs = op.As<ir::LoadAttrs>();
  const Slot& slot = SlotOf(op);
  if (attrs.piece != 0) {
    return EmitCopyPieces(cx_, LayoutOf(slot, attrs.tile), attrs, Tile(slot, attrs.tile), Index(op, 1), Index(op, 2),
                          Index(op, 3));
  }
  // What all tiles wait for comes faster so; more chunks would need more registers than a loading role has.
  const int at_once = cx_.program.channels[static_cast<size_t>(slot.channel)].resident && attrs.transposed ? 3 : 1;
  EmitCopyLoad(cx_, LayoutOf(slot, attrs.tile), attrs, Tile(slot, attrs.tile), Index(op, 1), Index(op, 2), Index(op, 3),
               at_once);
}

void RoleEmitter::GatherPixels(const Op& op) {
  const auto& attrs = op.As<ir::GatherAttrs>();
  const Slot& slot = SlotOf(op);
  EmitGatherPixels(cx_, LayoutOf(slot, attrs.tile), attrs, Tile(slot, attrs.tile), Index(op, 1), Index(op, 2),
                   Index(op, 3));
}

void RoleEmitter::PackRows(const Op& op) {
  EmitPackRows(cx_, op.As<ir::PackAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2), Index(op, 3));
}

void RoleEmitter::PackFilter(const Op& op) {
  EmitPackFilter(cx_, op.As<ir::PackFilterAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2));
}

void RoleEmitter::PackIm2col(const Op& op) { EmitPackIm2col(cx_, op.As<ir::PackIm2colAttrs>(), Index(op, 0)); }

void RoleEmitter::PackWindows(const Op& op) { EmitPackWindows(cx_, op.As<ir::PackWindowsAttrs>(), Index(op, 0)); }

void RoleEmitter::PackFactors(const Op& op) {
  EmitPackFactors(cx_, op.As<ir::PackFactorsAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2), Index(op, 3));
}

void RoleEmitter::QuantizeRows(const Op& op) {
  EmitQuantizeRows(cx_, op.As<ir::BlockRowsAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2));
}

void RoleEmitter::DequantizeRows(const Op& op) {
  EmitDequantizeRows(cx_, op.As<ir::BlockRowsAttrs>(), Index(op, 0), Index(op, 1), Index(op, 2));
}

void RoleEmitter::ReducePartialRows(const Op& op) {
  EmitReducePartialRows(cx_, op.As<ir::ReducePartialRowsAttrs>(), Index(op, 0), Index(op, 1));
}

}  // namespace laneshift::compiler
