#include <algorithm>

#include "base/check.h"
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

using ir::Binding;

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

Value* EmitLoadScaleFactor(const RoleContext& cx, Binding pointer) {
  Emitter& e = cx.e;
  return e.ir().CreateBitCast(e.LoadGlobal(cx.Param(pointer), 1, e.True())[0], e.F32());
}

ScaleFactors EmitLoadScaleFactors(const RoleContext& cx, const ir::ScaleFactorsAttrs& attrs, const ScalePlace& place,
                                  const ScaleMatrices& matrices) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const auto runs_of = [&](Binding extent) {
    return b.CreateUDiv(b.CreateAdd(cx.Param(extent), e.C32(kScaleRun - 1)), e.C32(kScaleRun));
  };
  const auto least_of = [&](Value* index, Value* extent) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, b.CreateSub(extent, e.C32(1)));
  };
  const auto wide = [&](Value* factor, Value* other) {
    return b.CreateMul(b.CreateZExt(factor, e.I64()), b.CreateZExt(other, e.I64()));
  };
  Value* k_runs = runs_of(Binding::kK);
  Value* n_runs = runs_of(Binding::kN);
  Value* rows = cx.Param(attrs.rows);
  // Beyond the last one the last is loaded again: what it multiplies is zero, or not stored. So the load needs no
  // predicate, and its address is one multiplication and addition to what no block of K changes.
  Value* own_run = least_of(place.block, k_runs);
  // `first`: the index in a matrix of the factor of block 0; `step`: from block to block.
  const auto load = [&](Binding base, Value* matrix, Value* lines, Value* pitch, Value* first, Value* step,
                        Value* block) {
    Value* fixed = b.CreateAdd(b.CreateMul(wide(matrix, lines), b.CreateZExt(pitch, e.I64())), first);
    Value* start = b.CreateAdd(cx.Param(base), b.CreateMul(fixed, e.C64(4)));
    Value* address = b.CreateAdd(start, b.CreateMul(wide(block, step), e.C64(4)));
    return b.CreateBitCast(e.LoadGlobal(address, 1, e.True())[0], e.F32());
  };
  const ElementIndex index(cx, {attrs.fragment, 8}, place.row, place.column);
  // All lanes load the same factors of B. If ptxas knows, it moves them to uniform registers, at once: between the MMA
  // instructions, which then wait for the load. The sign of a row is 0 in every lane, which ptxas does not know.
  Value* of_lane = b.CreateSub(own_run, b.CreateAShr(index.Row(0), 31));
  std::vector<Value*> of_columns;
  for (int i = 0; i < attrs.runs; ++i) {
    Value* own = b.CreateAdd(b.CreateUDiv(place.column, e.C32(kScaleRun)), e.C32(static_cast<uint32_t>(i)));
    of_columns.push_back(load(Binding::kBaseScaleB, matrices.of_b, n_runs, k_runs, wide(least_of(own, n_runs), k_runs),
                              e.C32(1), of_lane));
  }
  // Not multiplied here: that would wait for the loads, which are needed only when the products are done.
  ScaleFactors factors{attrs.runs, {}};
  for (int half = 0; half < ScaleRowsOf(attrs.fragment); ++half) {
    Value* own = b.CreateZExt(least_of(index.Row(2 * half), rows), e.I64());
    factors.values.push_back(load(Binding::kBaseScaleA, matrices.of_a, k_runs, rows, own, rows, own_run));
  }
  factors.values.insert(factors.values.end(), of_columns.begin(), of_columns.end());
  return factors;
}

ScaleFactors EmitSlotScaleFactors(const RoleContext& cx, ir::FragmentKind fragment, Value* of_a, Value* of_b,
                                  const ScalePlace& place) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const auto read = [&](Value* pointer) { return b.CreateBitCast(e.LoadSharedWord(pointer), e.F32()); };
  const int columns = cx.program.tile_n, shared = ir::ColumnsOfScale(columns);
  ScaleFactors factors{columns / shared, {}, shared};
  const ElementIndex index(cx, {fragment, 8}, place.row, place.column);
  for (int half = 0; half < ScaleRowsOf(fragment); ++half)
    factors.values.push_back(read(e.Offset(of_a, b.CreateShl(index.Row(2 * half), 2))));
  of_b = e.Offset(of_b, b.CreateShl(b.CreateAnd(place.block, e.C32(ir::kFactorsOfLine - 1)), 2));
  std::vector<Value*> of_runs;
  constexpr int kLineBytes = ir::kFactorsOfLine * 4, kRun = static_cast<int>(kScaleRun);
  for (int run = 0; run < ir::ScaleRunsOfTile(columns); ++run)
    of_runs.push_back(read(e.Offset(of_b, e.C32(static_cast<uint32_t>(run * kLineBytes)))));
  // Columns `first` of the tile and the next ones that share a factor: of the run in which they are, wherever in its
  // first run the tile begins.
  Value* begin = b.CreateURem(place.column, e.C32(static_cast<uint32_t>(kRun)));
  for (int first = 0; first < columns; first += shared) {
    const int least = first / kRun, most = (kRun - shared + first) / kRun;
    Value* own = of_runs[static_cast<size_t>(least)];
    for (int run = least + 1; run <= most; ++run) {
      Value* later = b.CreateICmpUGE(begin, e.C32(static_cast<uint32_t>(run * kRun - first)));
      own = b.CreateSelect(later, of_runs[static_cast<size_t>(run)], own);
    }
    factors.values.push_back(own);
  }
  return factors;
}

void EmitAddPromoted(const RoleContext& cx, const std::vector<Variable>& sums, const Fragment& fragment, int column,
                     const ScaleFactors* factors) {
  auto& b = cx.e.ir();
  const ir::FragmentLayout& layout = fragment.layout;
  const int first = ir::FragmentLayout{layout.kind, column}.Registers();
  std::vector<Value*> products;  // of the scale factors: of each row with each run of columns
  const size_t rows = factors == nullptr ? 0 : factors->values.size() - static_cast<size_t>(factors->runs);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t run = rows; run < factors->values.size(); ++run) {
      products.push_back(b.CreateFMul(factors->values[row], factors->values[run]));
    }
  }
  for (int j = 0; j < layout.Registers(); ++j) {
    Value* term = fragment.values[static_cast<size_t>(j)];
    if (factors != nullptr) {
      const int row = layout.RowOf(j) == 0 ? 0 : 1;
      const int run = (column % cx.program.Columns() + layout.ColumnOf(j)) / factors->columns;
      term = b.CreateFMul(term, products[static_cast<size_t>(row * factors->runs + run)]);
    }
    const Variable& sum = sums[static_cast<size_t>(first + j)];
    cx.e.Store(sum, b.CreateFAdd(cx.e.Load(sum), term));
  }
}

Fragment EmitReadPromoted(const RoleContext& cx, const std::vector<Variable>& sums,
                          const ir::ReadPromotedAttrs& attrs) {
  Fragment fragment{{attrs.fragment, attrs.columns}, {}};
  const int first = ir::FragmentLayout{attrs.fragment, attrs.column}.Registers();
  for (int j = 0; j < fragment.layout.Registers(); ++j) {
    fragment.values.push_back(cx.e.Load(sums[static_cast<size_t>(first + j)]));
  }
  return fragment;
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
