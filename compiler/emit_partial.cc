// Tiles that CTAs share: what each has goes through the workspace, and the last one adds up.
#include "compiler/emit_program.h"

namespace laneshift::compiler {
namespace {

constexpr int kQuad = 4;  // registers of one access

// Address of this lane's quads of the fragment that begins at `column`, in the piece of `cta`.
Value* QuadsOf(const RoleContext& cx, Value* cta, Value* home, Value* column) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::WorkspaceLayout layout = ir::WorkspaceOf(cx.program);
  // A CTA begins at most one shared tile and continues at most one.
  Value* begins = b.CreateZExt(b.CreateICmpEQ(cta, home), e.I32());
  Value* piece = b.CreateAdd(b.CreateShl(cta, 1), begins);
  Value* offset = b.CreateMul(b.CreateZExt(piece, e.I64()), e.C64(static_cast<uint64_t>(layout.PieceBytes())));
  Value* in_piece = b.CreateAdd(b.CreateMul(cx.warp, e.C32(static_cast<uint32_t>(layout.WarpBytes()))),
                                b.CreateMul(column, e.C32(static_cast<uint32_t>(layout.ColumnBytes()))));
  in_piece = b.CreateAdd(in_piece, b.CreateShl(cx.lane, 4));
  offset = b.CreateAdd(b.CreateAdd(offset, b.CreateZExt(in_piece, e.I64())), e.C64(ir::WorkspaceLayout::kCounterBytes));
  return b.CreateAdd(cx.Param(ir::Binding::kWorkspace), offset);
}

}  // namespace

void EmitPartialStore(const RoleContext& cx, const Fragment& fragment, Value* column, Value* home) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  Value* to = QuadsOf(cx, e.CtaIndex(), home, column);
  for (int j = 0; j < fragment.layout.Registers(); j += kQuad) {
    std::vector<Value*> words;
    for (int i = 0; i < kQuad; ++i) words.push_back(b.CreateBitCast(fragment.values[j + i], e.I32()));
    e.StoreGlobal(b.CreateAdd(to, e.C64(j / kQuad * ir::WorkspaceLayout::kQuadBytes)), words, e.True());
  }
}

// The warp's stores are ordered before lane 0's arrival by the warp barrier, and behind the arrival of the last one the
// same way; the arrival itself releases and acquires.
Value* EmitPartialArrive(const RoleContext& cx, Value* home, Value* past) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  Value* last = b.CreateSub(b.CreateSub(past, home), e.C32(1));
  const Variable is_last = e.NewVariable(e.I32(), e.C32(1));
  e.If(b.CreateICmpNE(last, e.C32(0)), [&] {
    Value* offset = b.CreateAdd(b.CreateMul(home, e.C32(ir::WorkspaceLayout::kCounterLine)), b.CreateShl(cx.warp, 2));
    Value* counter = b.CreateAdd(cx.Param(ir::Binding::kWorkspace), b.CreateZExt(offset, e.I64()));
    const Variable before = e.NewVariable(e.I32(), e.C32(0));
    e.WarpSync();
    e.If(b.CreateICmpEQ(cx.lane, e.C32(0)), [&] { e.Store(before, e.CountGlobal(counter, last)); });
    Value* arrived = e.BroadcastLane0(e.Load(before));
    e.WarpSync();
    e.Store(is_last, b.CreateZExt(b.CreateICmpEQ(arrived, last), e.I32()));
  });
  return b.CreateICmpNE(e.Load(is_last), e.C32(0));
}

Fragment EmitPartialSum(const RoleContext& cx, const Fragment& fragment, Value* column, Value* home, Value* past) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  Value* shared = b.CreateICmpULT(e.C32(1), b.CreateSub(past, home));
  const auto zero = llvm::ConstantFP::getNegativeZero(e.F32());  // adds nothing to anything
  std::vector<Variable> sums;
  for (Value* own : fragment.values) sums.push_back(e.NewVariable(e.F32(), b.CreateSelect(shared, zero, own)));
  e.For(home, b.CreateSelect(shared, past, home), 1, [&](Value* cta) {
    Value* from = QuadsOf(cx, cta, home, column);
    std::vector<Value*> loaded;
    for (int j = 0; j < fragment.layout.Registers(); j += kQuad) {
      Value* address = b.CreateAdd(from, e.C64(j / kQuad * ir::WorkspaceLayout::kQuadBytes));
      for (Value* word : e.LoadGlobal(address, kQuad, e.True())) loaded.push_back(b.CreateBitCast(word, e.F32()));
    }
    for (size_t j = 0; j < sums.size(); ++j) e.Store(sums[j], b.CreateFAdd(e.Load(sums[j]), loaded[j]));
  });
  Fragment sum{fragment.layout, {}};
  for (const Variable& value : sums) sum.values.push_back(e.Load(value));
  return sum;
}

}  // namespace laneshift::compiler
