#include "compiler/emit/emit_copy.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/integer_math.h"
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

constexpr int kCopyBytes = 16;

// Elements from the start of a filter to (tap, channel) `k`, the taps anywhere.
Value* TapOffset(const RoleContext& cx, Value* k) {
  auto& b = cx.e.ir();
  const auto scaled = [&](Value* index, ir::Binding distance) {
    return b.CreateMul(b.CreateZExt(index, cx.e.I64()), cx.Param(distance));
  };
  Value* offset = b.CreateZExt(b.CreateURem(k, cx.Param(ir::Binding::kChannels)), cx.e.I64());
  Value* tap = b.CreateUDiv(k, cx.Param(ir::Binding::kChannels));
  Value* column = b.CreateURem(tap, cx.Param(ir::Binding::kTapsS));
  offset = b.CreateAdd(offset, scaled(column, ir::Binding::kStrideB));
  Value* row = b.CreateUDiv(tap, cx.Param(ir::Binding::kTapsS));
  if (cx.program.FindParam(ir::Binding::kPlaneB) != nullptr) {
    offset = b.CreateAdd(offset, scaled(b.CreateUDiv(row, cx.Param(ir::Binding::kTapsR)), ir::Binding::kPlaneB));
    row = b.CreateURem(row, cx.Param(ir::Binding::kTapsR));
  }
  return b.CreateAdd(offset, scaled(row, ir::Binding::kRowB));
}

// Rows of A that an index vector names, in pieces of 16 bytes: adjacent threads have adjacent pieces of a row. As many
// are on their way at once as a loading role has registers for; all indices first, since addresses wait for them.
void EmitGatherRows(const RoleContext& cx, const ir::SharedLayout& layout, Value* tile_base, Value* inner,
                    Value* outer) {
  constexpr int kAtOnce = 8, kPieceWords = kCopyBytes / 4;
  Emitter& e = cx.e;
  auto& b = e.ir();
  const int bytes = layout.ElementBytes(), elements = kCopyBytes / bytes, of_row = layout.inner / elements;
  const int count = layout.outer * of_row, at_once = std::min(kAtOnce, base::CeilDiv(count, cx.threads));
  const auto constant = [&](int value) { return e.C32(static_cast<uint32_t>(value)); };
  struct Piece {
    Value *number, *row, *column;  // of the tile
    StoredRow stored;
    std::vector<Value*> words;
  };
  e.For(cx.thread, constant(count), cx.threads * at_once, [&](Value* first) {
    std::vector<Piece> pieces(static_cast<size_t>(at_once));
    for (int i = 0; i < at_once; ++i) {
      Piece& piece = pieces[static_cast<size_t>(i)];
      piece.number = i == 0 ? first : b.CreateAdd(first, constant(i * cx.threads));
      piece.row = b.CreateUDiv(piece.number, constant(of_row));
      piece.column = b.CreateMul(b.CreateURem(piece.number, constant(of_row)), constant(elements));
      piece.stored = FindRowOfA(cx, b.CreateAdd(outer, piece.row));
    }
    for (Piece& piece : pieces) {
      Value* column = b.CreateAdd(inner, piece.column);
      Value* row = b.CreateMul(b.CreateZExt(piece.stored.row, e.I64()), cx.Param(ir::Binding::kPitchA));
      Value* offset = b.CreateMul(b.CreateAdd(row, b.CreateZExt(column, e.I64())), e.C64(static_cast<uint64_t>(bytes)));
      Value* inside = b.CreateAnd(piece.stored.inside, b.CreateICmpULT(column, cx.Param(ir::Binding::kK)));
      piece.words = e.LoadGlobal(b.CreateAdd(cx.Param(ir::Binding::kBaseA), offset), kPieceWords, inside);
    }
    for (const Piece& piece : pieces) {
      const auto store = [&] {
        Value* byte = b.CreateMul(piece.column, constant(bytes));
        e.StoreShared(e.Offset(tile_base, e.TileOffset(layout, piece.row, byte)), piece.words);
      };
      if (&piece == &pieces.front()) {
        store();
      } else {
        e.If(b.CreateICmpULT(piece.number, constant(count)), store);
      }
    }
  });
}

// Whether all rows of A begin and end at multiples of 16 bytes, wherever the caller's memory is.
Value* HasWholePieces(const RoleContext& cx, int bytes) {
  auto& b = cx.e.ir();
  Value* row = b.CreateOr(cx.Param(ir::Binding::kPitchA), b.CreateZExt(cx.Param(ir::Binding::kK), cx.e.I64()));
  Value* all = b.CreateOr(cx.Param(ir::Binding::kBaseA), b.CreateMul(row, cx.e.C64(static_cast<uint64_t>(bytes))));
  return b.CreateICmpEQ(b.CreateAnd(all, cx.e.C64(kCopyBytes - 1)), cx.e.C64(0));
}

void EmitCopyElements(const RoleContext& cx, const ir::SharedLayout& layout, const ir::LoadAttrs& attrs,
                      Value* tile_base, Value* inner, Value* outer, Value* batch, int at_once) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::Operand operand = attrs.operand;
  const int bytes = layout.ElementBytes();
  const int elements = kCopyBytes / bytes;
  const int chunks_per_row = layout.inner / elements;
  Value* outer_limit = cx.Param(SizeOf(cx.program, layout.outer_axis));
  Value* inner_limit = cx.Param(SizeOf(cx.program, layout.inner_axis));
  Value* base = b.CreateAdd(
      cx.Param(ir::BaseOf(operand)),
      b.CreateMul(b.CreateMul(b.CreateZExt(batch, e.I64()), cx.Param(ir::StrideOf(operand))), e.C64(bytes)));
  struct Chunk {
    Value *row, *column;  // of the tile
    std::vector<Value*> elements;
  };
  const auto load = [&](Value* chunk) {
    // Adjacent threads load from adjacent addresses.
    const int fast = attrs.transposed ? layout.outer : chunks_per_row;
    Value* slow_index = b.CreateUDiv(chunk, e.C32(fast));
    Value* fast_index = b.CreateURem(chunk, e.C32(fast));
    Value* tile_row = attrs.transposed ? fast_index : slow_index;
    Value* tile_column = b.CreateMul(attrs.transposed ? slow_index : fast_index, e.C32(elements));
    Value* row = IndexAlong(cx, attrs, layout.outer_axis, outer, tile_row);
    Value* column = b.CreateAdd(inner, tile_column);
    const bool interleaved = attrs.halves && layout.inner_axis == ir::Axis::kN;
    const auto column_of = [&](int i) {
      return interleaved ? IndexAlong(cx, attrs, layout.inner_axis, inner, b.CreateAdd(tile_column, e.C32(i)))
                         : b.CreateAdd(column, e.C32(i));
    };
    Value* row_inside = b.CreateICmpULT(row, outer_limit);
    if (attrs.gathers) {
      const StoredRow stored = FindRowOfA(cx, row);
      row_inside = stored.inside;
      row = stored.row;
    }
    Value* pitch = cx.Param(ir::PitchOf(operand));
    Value* row_offset = b.CreateZExt(row, e.I64());
    if (!attrs.transposed) row_offset = b.CreateMul(row_offset, pitch);
    const auto address_of = [&](int i) {
      Value* own = attrs.taps    ? TapOffset(cx, b.CreateAdd(column, e.C32(i)))
                   : interleaved ? b.CreateZExt(column_of(i), e.I64())
                                 : b.CreateAdd(b.CreateZExt(column, e.I64()), e.C64(i));
      if (attrs.transposed) own = b.CreateMul(own, pitch);
      return b.CreateAdd(base, b.CreateMul(b.CreateAdd(row_offset, own), e.C64(bytes)));
    };
    Chunk loaded{tile_row, tile_column, {}};
    for (int i = 0; i < elements; ++i) {
      Value* inside = b.CreateAnd(row_inside, b.CreateICmpULT(column_of(i), inner_limit));
      loaded.elements.push_back(e.LoadGlobalElement(bytes, address_of(i), inside));
    }
    return loaded;
  };
  const auto store = [&](const Chunk& chunk) {
    Value* byte = b.CreateMul(chunk.column, e.C32(bytes));
    e.StoreShared(e.Offset(tile_base, e.TileOffset(layout, chunk.row, byte)), e.JoinElements(bytes, chunk.elements));
  };
  const int count = layout.outer * chunks_per_row;
  at_once = std::min(at_once, base::CeilDiv(count, cx.threads));
  e.For(cx.thread, e.C32(static_cast<uint32_t>(count)), cx.threads * at_once, [&](Value* first) {
    std::vector<Chunk> chunks = {load(first)};
    for (int i = 1; i < at_once; ++i)
      chunks.push_back(load(b.CreateAdd(first, e.C32(static_cast<uint32_t>(i * cx.threads)))));
    store(chunks.front());
    for (int i = 1; i < at_once; ++i) {
      e.If(b.CreateICmpULT(b.CreateAdd(first, e.C32(static_cast<uint32_t>(i * cx.threads))),
                           e.C32(static_cast<uint32_t>(count))),
           [&] { store(chunks[static_cast<size_t>(i)]); });
    }
  });
}

}  // namespace

// Rows of B of a convolution are the filters of all groups: N, the filters of one, would clip the others.
ir::Binding SizeOf(const ir::Program& program, ir::Axis axis) {
  if (axis == ir::Axis::kM) return ir::Binding::kM;
  if (axis == ir::Axis::kK) return ir::Binding::kK;
  return program.FindParam(ir::Binding::kFilters) != nullptr ? ir::Binding::kFilters : ir::Binding::kN;
}

Value* IndexAlong(const RoleContext& cx, const ir::LoadAttrs& attrs, ir::Axis axis, Value* first, Value* step) {
  auto& b = cx.e.ir();
  if (!attrs.halves || axis != ir::Axis::kN) return b.CreateAdd(first, step);
  Value* half = b.CreateMul(b.CreateAnd(step, cx.e.C32(1)), cx.Param(ir::Binding::kColumns));
  return b.CreateAdd(b.CreateAdd(first, b.CreateLShr(step, 1)), half);
}

void EmitCopyLoad(const RoleContext& cx, const ir::SharedLayout& layout, const ir::LoadAttrs& attrs, Value* tile_base,
                  Value* inner, Value* outer, Value* batch, int at_once) {
  const auto by_elements = [&] { EmitCopyElements(cx, layout, attrs, tile_base, inner, outer, batch, at_once); };
  if (!attrs.gathers) return by_elements();
  cx.e.If(
      HasWholePieces(cx, layout.ElementBytes()), [&] { EmitGatherRows(cx, layout, tile_base, inner, outer); },
      by_elements);
}

}  // namespace laneshift::compiler
