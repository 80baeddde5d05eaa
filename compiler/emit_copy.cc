#include "base/check.h"
#include "compiler/emit_program.h"

namespace laneshift::compiler {
namespace {

constexpr int kChunkBytes = 16;

ir::Binding SizeOf(ir::Axis axis) {
  return axis == ir::Axis::kM ? ir::Binding::kM : axis == ir::Axis::kN ? ir::Binding::kN : ir::Binding::kK;
}

}  // namespace

void EmitCopyLoad(const RoleContext& cx, const ir::SharedLayout& layout, ir::Operand operand, Value* tile_base,
                  Value* inner, Value* outer, Value* batch) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  LS_CHECK(layout.ElementBytes() == 2, "copied operands are 16-bit");
  const int elements = kChunkBytes / layout.ElementBytes();
  const int chunks_per_row = layout.inner / elements;
  Value* outer_limit = cx.Param(SizeOf(layout.outer_axis));
  Value* inner_limit = cx.Param(SizeOf(layout.inner_axis));
  Value* base =
      b.CreateAdd(cx.Param(ir::BaseOf(operand)),
                  b.CreateMul(b.CreateMul(b.CreateZExt(batch, e.I64()), cx.Param(ir::StrideOf(operand))), e.C64(2)));
  e.For(cx.thread, e.C32(layout.outer * chunks_per_row), cx.threads, [&](Value* chunk) {
    Value* tile_row = b.CreateUDiv(chunk, e.C32(chunks_per_row));
    Value* tile_column = b.CreateMul(b.CreateURem(chunk, e.C32(chunks_per_row)), e.C32(elements));
    Value* row = b.CreateAdd(outer, tile_row);
    Value* column = b.CreateAdd(inner, tile_column);
    Value* row_inside = b.CreateICmpULT(row, outer_limit);
    Value* offset = b.CreateAdd(b.CreateMul(b.CreateZExt(row, e.I64()), cx.Param(ir::PitchOf(operand))),
                                b.CreateZExt(column, e.I64()));
    Value* address = b.CreateAdd(base, b.CreateShl(offset, 1));
    std::vector<Value*> words;
    Value* low = nullptr;
    for (int i = 0; i < elements; ++i) {
      Value* inside = b.CreateAnd(row_inside, b.CreateICmpULT(b.CreateAdd(column, e.C32(i)), inner_limit));
      Value* element = b.CreateZExt(e.LoadGlobal16(b.CreateAdd(address, e.C64(2 * i)), inside), e.I32());
      if (i % 2 == 0) {
        low = element;
      } else {
        words.push_back(b.CreateOr(low, b.CreateShl(element, 16)));
      }
    }
    // SharedLayout::Offset and its XOR, on run-time indices.
    Value* byte = b.CreateMul(tile_column, e.C32(layout.ElementBytes()));
    Value* linear =
        b.CreateAdd(b.CreateAdd(b.CreateMul(b.CreateUDiv(byte, e.C32(layout.Span())), e.C32(layout.ColumnBytes())),
                                b.CreateMul(tile_row, e.C32(layout.Span()))),
                    b.CreateURem(byte, e.C32(layout.Span())));
    Value* phase = b.CreateAnd(b.CreateLShr(linear, 7), e.C32(layout.SwizzleMask()));
    e.StoreShared(e.Offset(tile_base, b.CreateXor(linear, b.CreateShl(phase, 4))), words);
  });
}

}  // namespace laneshift::compiler
