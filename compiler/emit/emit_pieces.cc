// A tile of an operand by asynchronous copies of threads, each of a piece of 4, 8 or 16 bytes of a row.
#include <algorithm>
#include <vector>

#include "compiler/emit/emit_copy.h"
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"
#include "ir/piece_lanes.h"

namespace laneshift::compiler {
namespace {

// Copies of one thread.
class PieceCopier {
 public:
  // Of the tile in the operand.
  struct Start {
    Value *inner, *outer, *batch;
  };

  PieceCopier(const RoleContext& cx, const ir::SharedLayout& layout, const ir::LoadAttrs& attrs)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        layout_(layout),
        attrs_(attrs),
        grid_(layout, attrs.piece),
        lane_row_(b_.CreateUDiv(cx.lane, Number(grid_.lanes))),
        lane_byte_(b_.CreateMul(b_.CreateURem(cx.lane, Number(grid_.lanes)), Number(attrs.piece))) {}

  void Copy(Value* tile_base, const Start& start) {
    const int elements = attrs_.piece / layout_.ElementBytes();
    if (elements == 1) return CopyGroups(tile_base, start, true);
    Value* limit = cx_.Param(SizeOf(cx_.program, layout_.inner_axis));
    e_.If(
        b_.CreateICmpEQ(b_.CreateAnd(limit, Number(elements - 1)), Number(0)),
        [&] { CopyGroups(tile_base, start, true); }, [&] { CopyGroups(tile_base, start, false); });
  }

 private:
  // Pieces that all rows have at the same place.
  struct Run {
    Value* byte;     // of the row in the tile
    Value* address;  // in row 0
    Value* inside;   // whether the first element is
    Value* bytes;    // that are inside; null: all or none
  };

  // `whole`: pieces are inside or outside.
  void CopyGroups(Value* tile_base, const Start& start, bool whole) {
    const std::vector<Run> runs = RunsFrom(start, whole);
    // Of the last groups of two operands different warps have one more.
    Value* last = Number(cx_.threads / kWarpThreads - 1);
    Value* warp = attrs_.operand == ir::Operand::kB ? b_.CreateSub(last, cx_.warp) : cx_.warp;
    e_.For(warp, Number(layout_.outer / ir::PieceLanes::kGroupRows), cx_.threads / kWarpThreads, [&](Value* group) {
      Value* to = e_.Offset(tile_base, b_.CreateMul(group, Number(ir::PieceLanes::kGroupRows * layout_.Span())));
      Value* first = b_.CreateMul(group, Number(ir::PieceLanes::kGroupRows));
      // The rows that an index vector names are all asked for before the first copy waits for one of them.
      std::vector<StoredRow> rows;
      for (int step = 0; step < grid_.Steps(); ++step) rows.push_back(RowAt(start.outer, first, step));
      for (int step = 0; step < grid_.Steps(); ++step) CopyRow(to, step, rows[static_cast<size_t>(step)], runs);
    });
  }

  Value* Number(int value) const { return e_.C32(static_cast<uint32_t>(value)); }
  Value* Long(Value* value) const { return b_.CreateZExt(value, e_.I64()); }

  std::vector<Run> RunsFrom(const Start& start, bool whole) {
    const int bytes = layout_.ElementBytes();
    Value* matrix = b_.CreateMul(Long(start.batch), cx_.Param(ir::StrideOf(attrs_.operand)));
    Value* limit = cx_.Param(SizeOf(cx_.program, layout_.inner_axis));
    std::vector<Run> runs;
    for (int run = 0; run < grid_.runs; ++run) {
      Value* byte = b_.CreateAdd(lane_byte_, Number(run * grid_.lanes * attrs_.piece));
      Value* column = b_.CreateAdd(start.inner, b_.CreateUDiv(byte, Number(bytes)));
      Value* offset = b_.CreateMul(b_.CreateAdd(matrix, Long(column)), e_.C64(static_cast<uint64_t>(bytes)));
      Value* inside = b_.CreateICmpULT(column, limit);
      Value* size = nullptr;
      if (!whole) {
        Value* left = b_.CreateSub(limit, column);
        Value* all = Number(attrs_.piece / bytes);
        size = b_.CreateMul(b_.CreateSelect(b_.CreateICmpULT(left, all), left, all), Number(bytes));
      }
      runs.push_back({byte, b_.CreateAdd(cx_.Param(ir::BaseOf(attrs_.operand)), offset), inside, size});
    }
    return runs;
  }

  StoredRow RowAt(Value* outer, Value* first, int step) {
    Value* row = b_.CreateAdd(first, b_.CreateAdd(lane_row_, Number(step * grid_.rows)));
    Value* index = IndexAlong(cx_, attrs_, layout_.outer_axis, outer, row);
    if (attrs_.gathers) return FindRowOfA(cx_, index);
    return {b_.CreateICmpULT(index, cx_.Param(SizeOf(cx_.program, layout_.outer_axis))), index};
  }

  void CopyRow(Value* group, int step, const StoredRow& stored, const std::vector<Run>& runs) {
    Value* row = b_.CreateAdd(lane_row_, Number(step * grid_.rows));
    Value* pitch =
        b_.CreateMul(cx_.Param(ir::PitchOf(attrs_.operand)), e_.C64(static_cast<uint64_t>(layout_.ElementBytes())));
    Value* offset = b_.CreateMul(Long(stored.row), pitch);
    for (const Run& run : runs) {
      Value* to = e_.Offset(group, e_.TileOffset(layout_, row, run.byte));
      Value* from = b_.CreateAdd(run.address, offset);
      Value* inside = b_.CreateAnd(stored.inside, run.inside);
      if (run.bytes == nullptr) {
        e_.CopyAsync(to, from, attrs_.piece, inside);
      } else {
        e_.CopyAsyncPart(to, from, attrs_.piece, b_.CreateSelect(inside, run.bytes, Number(0)));
      }
    }
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& layout_;
  const ir::LoadAttrs& attrs_;
  const ir::PieceLanes grid_;
  Value *lane_row_, *lane_byte_;
};

}  // namespace

void EmitCopyPieces(const RoleContext& cx, const ir::SharedLayout& layout, const ir::LoadAttrs& attrs, Value* tile_base,
                    Value* inner, Value* outer, Value* batch) {
  PieceCopier(cx, layout, attrs).Copy(tile_base, {inner, outer, batch});
}

}  // namespace laneshift::compiler
