#include <algorithm>

#include "base/check.h"
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"
#include "ir/element_type.h"

namespace laneshift::compiler {

Value* WarpGroup::Number() const {
  return cx_.threads == kWarpThreads * sharers_ ? cx_.e.C32(0) : cx_.e.ir().CreateUDiv(cx_.warp, cx_.e.C32(sharers_));
}

Value* WarpGroup::IsFirst() const {
  auto& b = cx_.e.ir();
  Value* first = b.CreateICmpEQ(cx_.lane, cx_.e.C32(0));
  if (sharers_ == 1) return first;
  return b.CreateAnd(first, b.CreateICmpEQ(b.CreateURem(cx_.warp, cx_.e.C32(sharers_)), cx_.e.C32(0)));
}

// A named barrier for the group: barrier 0 is that of all threads, and roles of such warps begin
// after the first warpgroup.
Value* WarpGroup::Barrier() const {
  LS_CHECK(cx_.first_warp >= sharers_, "a group of warps would use the barrier of all threads");
  return cx_.e.ir().CreateAdd(Number(), cx_.e.C32(cx_.first_warp / sharers_));
}

void WarpGroup::Meet() const {
  if (sharers_ == 1) return cx_.e.WarpSync();
  cx_.e.BarrierSync(Barrier(), kWarpThreads * sharers_);
}

Value* WarpGroup::Any(Value* any) const {
  LS_CHECK(sharers_ > 1, "a single warp needs no named barrier");
  return cx_.e.BarrierAny(Barrier(), kWarpThreads * sharers_, any);
}

Fragment EmitScale(const RoleContext& cx, const Fragment& fragment, Value* factor) {
  Fragment scaled{fragment.layout, {}};
  for (Value* value : fragment.values) scaled.values.push_back(cx.e.ir().CreateFMul(value, factor));
  return scaled;
}

Fragment EmitToF32(const RoleContext& cx, const Fragment& fragment) {
  Fragment converted{fragment.layout, {}};
  for (Value* value : fragment.values) converted.values.push_back(cx.e.ir().CreateSIToFP(value, cx.e.F32()));
  return converted;
}

void EmitGlobalStore(const RoleContext& cx, const Fragment& fragment, const ir::GlobalAttrs& attrs, Value* row,
                     Value* column, Value* batch) {
  Emitter& e = cx.e;
  const GlobalFragment d(cx, fragment.layout, attrs, row, column, batch);
  for (int j = 0; j < fragment.layout.Registers(); j += attrs.vector) {
    StoreRun(e, attrs.type, d.Address(j), Run(fragment, j, attrs.vector), d.Inside(j));
  }
}

namespace {

// A fragment of D by stmatrix, from `first_byte` of each row of the copy on, or transposed. Eight columns of a fragment
// are two matrices of 8 x 8, one below the other; transposed, next to each other. As many pairs of matrices at once as
// there are.
void StoreMatrices(const RoleContext& cx, const Fragment& fragment, const ir::SharedLayout& layout, Value* first_byte,
                   Value* copy_base, bool transposed) {
  constexpr int kMatrixRows = 8, kMatrixBytes = 16, kRegistersOfPair = 4;
  Emitter& e = cx.e;
  auto& b = e.ir();
  const int pairs = fragment.layout.Registers() / kRegistersOfPair;
  const int at_once = pairs % 2 == 0 ? 2 : 1;
  // Lane l addresses row l mod 8 of matrix l / 8.
  Value* matrix = b.CreateLShr(cx.lane, 3);
  Value* half = b.CreateAnd(matrix, e.C32(1));
  Value* own_pair = b.CreateAnd(b.CreateLShr(matrix, 1), e.C32(at_once - 1));
  Value* across = transposed ? own_pair : half;
  Value* along = transposed ? half : own_pair;
  Value* row = b.CreateAdd(b.CreateMul(across, e.C32(kMatrixRows)), b.CreateAnd(cx.lane, e.C32(kMatrixRows - 1)));
  Value* byte = b.CreateAdd(first_byte, b.CreateMul(along, e.C32(kMatrixBytes)));
  for (int pair = 0; pair < pairs; pair += at_once) {
    Value* offset = transposed ? e.TileOffset(layout, b.CreateAdd(row, e.C32(pair * kMatrixRows)), byte)
                               : e.TileOffset(layout, row, b.CreateAdd(byte, e.C32(pair * kMatrixBytes)));
    e.StoreMatrices(e.Offset(copy_base, offset),
                    e.NarrowWords(layout.type, Run(fragment, pair * kRegistersOfPair, at_once * kRegistersOfPair)),
                    transposed);
  }
}

}  // namespace

void EmitStageStore(const RoleContext& cx, const Fragment& fragment, const ir::Buffer& buffer, int column,
                    Value* copy_base) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::SharedLayout& layout = buffer.layout;
  LS_CHECK(layout.Columns() == 1, "a staging buffer is one swizzle span wide");
  const ElementIndex index(cx, fragment.layout, e.C32(0), e.C32(0));
  const int bits = ir::BitsOf(layout.type);
  const auto bytes_of = [&](int elements) { return elements * bits / 8; };
  const bool transposed = cx.program.row_axis == ir::Axis::kN;
  Value* first_byte = e.C32(bytes_of(column));
  if (buffer.sharers > 1) {
    Value* own = b.CreateAnd(cx.warp, e.C32(buffer.sharers - 1));
    first_byte = b.CreateMul(own, e.C32(bytes_of(layout.inner / buffer.sharers)));
  }
  if (bits == 16 && fragment.layout.kind == ir::FragmentKind::kMma16x8) {
    StoreMatrices(cx, fragment, layout, first_byte, copy_base, transposed);
  } else {
    // Registers of one store: 16 bytes of a row, or the pair that a lane holds, or one across the rows.
    const int run = transposed ? 1 : std::min(fragment.layout.Run(), 128 / bits);
    LS_CHECK(bits >= 8 || fragment.layout.ColumnLanes() == 0, "lanes would share bytes of packed elements");
    Value* lane_byte = first_byte;
    if (bits >= 8) lane_byte = b.CreateAdd(first_byte, b.CreateMul(index.lane_column, e.C32(bits / 8)));
    for (int j = 0; j < fragment.layout.Registers(); j += run) {
      Value* row = b.CreateAdd(index.lane_row, e.C32(index.RowOf(j)));
      Value* byte = b.CreateAdd(lane_byte, e.C32(bytes_of(index.ColumnOf(j))));
      Value* to = e.Offset(copy_base, e.TileOffset(layout, row, byte));
      if (bytes_of(run) >= 4) {
        e.StoreShared(to, e.NarrowWords(layout.type, Run(fragment, j, run)));
      } else {
        e.StoreShared16(to, e.NarrowHalf(layout.type, Run(fragment, j, run)));
      }
    }
  }
}

}  // namespace laneshift::compiler
