#include <functional>
#include <map>
#include <utility>

#include "base/check.h"
#include "compiler/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

// Row and column in D of the element that register `j` of this lane holds, from the first ones of the fragment: a part
// that differs from lane to lane, and a constant for each register.
class ElementIndex {
 public:
  ElementIndex(const RoleContext& cx, const ir::FragmentLayout& layout, Value* row, Value* column)
      : e_(cx.e), fragment_(layout), transposed_(cx.program.row_axis == ir::Axis::kN) {
    auto& b = e_.ir();
    const bool one_row = fragment_.kind == ir::FragmentKind::kRowPerLane;
    lane_row = one_row ? cx.lane : b.CreateLShr(cx.lane, 2);
    lane_column = one_row ? e_.C32(0) : b.CreateShl(b.CreateAnd(cx.lane, e_.C32(3)), 1);
    if (transposed_) std::swap(lane_row, lane_column);
    first_row = b.CreateAdd(row, lane_row);
    first_column = b.CreateAdd(column, lane_column);
  }
  int RowOf(int j) const { return transposed_ ? fragment_.ColumnOf(j) : fragment_.RowOf(j); }
  int ColumnOf(int j) const { return transposed_ ? fragment_.RowOf(j) : fragment_.ColumnOf(j); }
  Value* Row(int j) const { return e_.ir().CreateAdd(first_row, e_.C32(RowOf(j))); }
  Value* Column(int j) const { return e_.ir().CreateAdd(first_column, e_.C32(ColumnOf(j))); }

 private:
  Emitter& e_;
  const ir::FragmentLayout fragment_;
  const bool transposed_;

 public:
  Value* lane_row;
  Value* lane_column;
  Value* first_row;
  Value* first_column;
};

// Where a row of C or D lies: whether it is inside, and the element offset of its first column.
struct RowPlace {
  Value* inside;
  Value* offset;
};

RowPlace PlaceRow(const RoleContext& cx, ir::Operand operand, ir::RowMap rows, Value* row, Value* batch) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const auto scaled = [&](Value* index, Binding distance) {
    return b.CreateMul(b.CreateZExt(index, e.I64()), cx.Param(distance));
  };
  Value* inside = b.CreateICmpULT(row, cx.Param(Binding::kM));
  if (rows == ir::RowMap::kMatrix) {
    return {inside, b.CreateAdd(scaled(batch, ir::StrideOf(operand)), scaled(row, ir::PitchOf(operand)))};
  }
  // A position of the walk; the batch is the group of channels.
  const ir::WalkBindings walk = ir::WalkOf(operand);
  Value* q = b.CreateURem(row, cx.Param(Binding::kWalkQ));
  Value* rest = b.CreateUDiv(row, cx.Param(Binding::kWalkQ));
  Value* offset = scaled(q, ir::PitchOf(operand));
  offset = b.CreateAdd(offset, scaled(b.CreateURem(rest, cx.Param(Binding::kOutP)), walk.row));
  rest = b.CreateUDiv(rest, cx.Param(Binding::kOutP));
  if (cx.program.FindParam(Binding::kOutO) != nullptr) {
    offset = b.CreateAdd(offset, scaled(b.CreateURem(rest, cx.Param(Binding::kOutO)), walk.plane));
    rest = b.CreateUDiv(rest, cx.Param(Binding::kOutO));
  }
  offset = b.CreateAdd(offset, scaled(rest, ir::StrideOf(operand)));
  offset = b.CreateAdd(offset, b.CreateZExt(b.CreateMul(batch, cx.Param(Binding::kN)), e.I64()));
  return {b.CreateAnd(inside, b.CreateICmpULT(q, cx.Param(Binding::kOutQ))), offset};
}

// Whether a row of the warp is kept, where the last ones are lost; else `inside` alone.
Value* Kept(const RoleContext& cx, Value* row_of_warp, Value* inside) {
  constexpr int kWarpThreads = 32;
  if (cx.program.kept_rows == 0) return inside;
  const int kept = cx.program.kept_rows * kWarpThreads / cx.threads;
  return cx.e.ir().CreateAnd(inside, cx.e.ir().CreateICmpULT(row_of_warp, cx.e.C32(kept)));
}

// Addresses and bounds of a fragment's runs in global memory.
class GlobalFragment {
 public:
  GlobalFragment(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::GlobalAttrs& attrs, Value* row,
                 Value* column, Value* batch)
      : cx_(cx), index_(cx, layout, row, column), bytes_(static_cast<int>(DataTypeBytes(attrs.type))) {
    auto& b = cx.e.ir();
    for (int j = 0; j < layout.Registers(); ++j) {
      if (rows_.find(index_.RowOf(j)) != rows_.end()) continue;
      RowPlace place = PlaceRow(cx, attrs.operand, attrs.rows, index_.Row(j), batch);
      place.inside = Kept(cx, b.CreateAdd(index_.lane_row, cx.e.C32(index_.RowOf(j))), place.inside);
      Value* offset = b.CreateAdd(place.offset, b.CreateZExt(index_.first_column, cx.e.I64()));
      Value* base = b.CreateAdd(cx.Param(attrs.base), b.CreateMul(offset, cx.e.C64(bytes_)));
      rows_[index_.RowOf(j)] = {place.inside, base};
    }
  }
  Value* Address(int j) const {
    return cx_.e.ir().CreateAdd(rows_.at(index_.RowOf(j)).offset, cx_.e.C64(index_.ColumnOf(j) * bytes_));
  }
  Value* Inside(int j) const {
    auto& b = cx_.e.ir();
    return b.CreateAnd(rows_.at(index_.RowOf(j)).inside, b.CreateICmpULT(index_.Column(j), cx_.Param(Binding::kN)));
  }

 private:
  const RoleContext& cx_;
  const ElementIndex index_;
  const int bytes_;
  std::map<int, RowPlace> rows_;  // by the constant part of the row; `offset` is the address of its first column
};

std::vector<Value*> Run(const Fragment& fragment, int first, int count) {
  return {fragment.values.begin() + first, fragment.values.begin() + first + count};
}

// `count` neighbouring elements as f32, the first one at `address`.
std::vector<Value*> LoadRun(Emitter& e, DataType type, Value* address, int count, Value* inside) {
  const int bytes = static_cast<int>(DataTypeBytes(type));
  if (count * bytes >= 4) return e.WidenWords(type, e.LoadGlobal(address, count * bytes / 4, inside));
  return e.WidenHalf(type, e.LoadGlobalElement(count * bytes, address, inside), count);
}

void StoreRun(Emitter& e, DataType type, Value* address, const std::vector<Value*>& values, Value* inside) {
  const int bytes = static_cast<int>(DataTypeBytes(type) * static_cast<int64_t>(values.size()));
  if (bytes >= 4) return e.StoreGlobal(address, e.NarrowWords(type, values), inside);
  e.StoreGlobalElement(bytes, address, e.NarrowHalf(type, values), inside);
}

Value* CombineWith(Emitter& e, ir::Combine how, Value* value, Value* other) {
  return how == ir::Combine::kAdd ? e.ir().CreateFAdd(value, other) : e.ir().CreateFMul(value, other);
}

}  // namespace

Fragment EmitScale(const RoleContext& cx, const Fragment& fragment, Value* factor) {
  Fragment scaled{fragment.layout, {}};
  for (Value* value : fragment.values) scaled.values.push_back(cx.e.ir().CreateFMul(value, factor));
  return scaled;
}

Value* EmitLoadFactor(const RoleContext& cx, ir::Binding pointer) {
  Emitter& e = cx.e;
  return e.ir().CreateBitCast(e.LoadGlobal(cx.Param(pointer), 1, e.True())[0], e.F32());
}

Factors EmitLoadFactors(const RoleContext& cx, const ir::FactorsAttrs& attrs, Value* row, Value* column, Value* run,
                        Value* batch) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const auto runs_of = [&](Binding extent) {
    return b.CreateUDiv(b.CreateAdd(cx.Param(extent), e.C32(kScaleRun - 1)), e.C32(kScaleRun));
  };
  // The factor at [batch][middle][inner] of an array of `middles` x `inners`.
  const auto load = [&](Binding base, Value* middles, Value* middle, Value* inners, Value* inner, Value* inside) {
    Value* line = b.CreateAdd(b.CreateMul(b.CreateZExt(batch, e.I64()), b.CreateZExt(middles, e.I64())),
                              b.CreateZExt(middle, e.I64()));
    Value* index = b.CreateAdd(b.CreateMul(line, b.CreateZExt(inners, e.I64())), b.CreateZExt(inner, e.I64()));
    Value* address = b.CreateAdd(cx.Param(base), b.CreateMul(index, e.C64(4)));
    return b.CreateBitCast(e.LoadGlobal(address, 1, inside)[0], e.F32());
  };
  Value* k_runs = runs_of(Binding::kK);
  Value* n_runs = runs_of(Binding::kN);
  Value* run_inside = b.CreateICmpULT(run, k_runs);
  std::vector<Value*> of_columns;
  for (int i = 0; i < attrs.runs; ++i) {
    Value* own = b.CreateAdd(b.CreateUDiv(column, e.C32(kScaleRun)), e.C32(static_cast<uint32_t>(i)));
    of_columns.push_back(
        load(Binding::kBaseScaleB, n_runs, own, k_runs, run, b.CreateAnd(run_inside, b.CreateICmpULT(own, n_runs))));
  }
  const ElementIndex index(cx, {attrs.fragment, 8}, row, column);
  // Not multiplied here: that would wait for the loads, and they have until the products are done.
  Factors factors{attrs.runs, {}};
  const int rows = attrs.fragment == ir::FragmentKind::kRowPerLane ? 1 : 2;
  for (int half = 0; half < rows; ++half) {
    Value* own = index.Row(2 * half);
    Value* m = cx.Param(Binding::kM);
    factors.values.push_back(
        load(Binding::kBaseScaleA, k_runs, run, m, own, b.CreateAnd(run_inside, b.CreateICmpULT(own, m))));
  }
  factors.values.insert(factors.values.end(), of_columns.begin(), of_columns.end());
  return factors;
}

void EmitAddSums(const RoleContext& cx, const std::vector<Variable>& sums, const Fragment& fragment, int column,
                 const Factors* factors) {
  auto& b = cx.e.ir();
  const ir::FragmentLayout& layout = fragment.layout;
  const int first = ir::FragmentLayout{layout.kind, column}.Registers();
  std::vector<Value*> products;  // of each row with each run of columns
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
      const int run = (column + layout.ColumnOf(j)) / static_cast<int>(kScaleRun);
      term = b.CreateFMul(term, products[static_cast<size_t>(row * factors->runs + run)]);
    }
    const Variable& sum = sums[static_cast<size_t>(first + j)];
    cx.e.Store(sum, b.CreateFAdd(cx.e.Load(sum), term));
  }
}

Fragment EmitReadSums(const RoleContext& cx, const std::vector<Variable>& sums, const ir::ReadSumsAttrs& attrs) {
  Fragment fragment{{attrs.fragment, attrs.columns}, {}};
  const int first = ir::FragmentLayout{attrs.fragment, attrs.column}.Registers();
  for (int j = 0; j < fragment.layout.Registers(); ++j) {
    fragment.values.push_back(cx.e.Load(sums[static_cast<size_t>(first + j)]));
  }
  return fragment;
}

Fragment EmitMap(const RoleContext& cx, const Fragment& fragment, const ir::MapAttrs& attrs) {
  const auto number = [&](int i) {
    return i < ir::NumbersOf(attrs.function) ? cx.Param(ir::EpilogueNumber(attrs.number + i)) : nullptr;
  };
  Fragment mapped{fragment.layout, {}};
  for (Value* value : fragment.values) {
    mapped.values.push_back(EmitFunction(cx.e, attrs.function, attrs.approximate != 0, value, number(0), number(1)));
  }
  return mapped;
}

Fragment EmitLoadMatrix(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::GlobalAttrs& attrs,
                        Value* row, Value* column, Value* batch) {
  const GlobalFragment matrix(cx, layout, attrs, row, column, batch);
  Fragment loaded{layout, {}};
  for (int j = 0; j < layout.Registers(); j += attrs.vector) {
    const std::vector<Value*> run = LoadRun(cx.e, attrs.type, matrix.Address(j), attrs.vector, matrix.Inside(j));
    loaded.values.insert(loaded.values.end(), run.begin(), run.end());
  }
  return loaded;
}

std::vector<Value*> EmitInside(const RoleContext& cx, const ir::FragmentLayout& layout, ir::RowMap rows, Value* row,
                               Value* column, Value* batch) {
  auto& b = cx.e.ir();
  const ElementIndex index(cx, layout, row, column);
  std::map<int, Value*> of_rows;  // by the constant part of the row
  std::vector<Value*> inside;
  for (int j = 0; j < layout.Registers(); ++j) {
    Value*& of_row = of_rows[index.RowOf(j)];
    if (of_row == nullptr) {
      of_row = Kept(cx, b.CreateAdd(index.lane_row, cx.e.C32(index.RowOf(j))),
                    PlaceRow(cx, ir::Operand::kD, rows, index.Row(j), batch).inside);
    }
    inside.push_back(b.CreateAnd(of_row, b.CreateICmpULT(index.Column(j), cx.Param(Binding::kN))));
  }
  return inside;
}

Fragment EmitCombineMatrix(const RoleContext& cx, const Fragment& fragment, const ir::CombineMatrixAttrs& attrs,
                           Value* row, Value* column, Value* batch) {
  const ir::GlobalAttrs place{attrs.operand, attrs.base, attrs.type, attrs.vector, attrs.rows};
  Fragment combined = EmitLoadMatrix(cx, fragment.layout, place, row, column, batch);
  for (size_t j = 0; j < combined.values.size(); ++j) {
    Value*& other = combined.values[j];
    if (attrs.beta != 0) other = cx.e.ir().CreateFMul(other, cx.Param(Binding::kBeta));
    if (attrs.derivative != ir::Function::kIdentity) other = EmitDerivative(cx.e, attrs.derivative, other);
    other = CombineWith(cx.e, attrs.how, fragment.values[j], other);
  }
  return combined;
}

Fragment EmitLoadVector(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::CombineVectorAttrs& attrs,
                        Value* row, Value* column, Value* batch) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ElementIndex index(cx, layout, row, column);
  const bool by_row = attrs.axis == BiasAxis::kM;
  Value* limit = cx.Param(by_row ? Binding::kM : Binding::kN);
  // Each group of output channels has its own part of the vector; the matrices of a batch share it.
  Value* part = attrs.rows == ir::RowMap::kPixels ? b.CreateMul(batch, limit) : e.C32(0);
  std::map<int, Value*> loaded;  // by the constant part of the index
  Fragment vector{layout, {}};
  for (int j = 0; j < layout.Registers(); ++j) {
    const int constant = by_row ? index.RowOf(j) : index.ColumnOf(j);
    if (loaded.find(constant) == loaded.end()) {
      Value* at = by_row ? index.Row(j) : index.Column(j);
      Value* address = b.CreateAdd(cx.Param(attrs.base), b.CreateMul(b.CreateZExt(b.CreateAdd(at, part), e.I64()),
                                                                     e.C64(DataTypeBytes(attrs.type))));
      loaded[constant] = LoadRun(e, attrs.type, address, 1, b.CreateICmpULT(at, limit))[0];
    }
    vector.values.push_back(loaded[constant]);
  }
  return vector;
}

Fragment EmitCombineVector(const RoleContext& cx, const Fragment& fragment, const ir::CombineVectorAttrs& attrs,
                           Value* row, Value* column, Value* batch) {
  Fragment combined = EmitLoadVector(cx, fragment.layout, attrs, row, column, batch);
  for (size_t j = 0; j < combined.values.size(); ++j) {
    combined.values[j] = CombineWith(cx.e, attrs.how, fragment.values[j], combined.values[j]);
  }
  return combined;
}

void EmitGlobalStore(const RoleContext& cx, const Fragment& fragment, const ir::GlobalAttrs& attrs, Value* row,
                     Value* column, Value* batch) {
  Emitter& e = cx.e;
  const GlobalFragment d(cx, fragment.layout, attrs, row, column, batch);
  for (int j = 0; j < fragment.layout.Registers(); j += attrs.vector) {
    StoreRun(e, attrs.type, d.Address(j), Run(fragment, j, attrs.vector), d.Inside(j));
  }
}

void EmitStoreRows(const RoleContext& cx, const ir::Buffer& buffer, ir::RowMap rows, Value* copy_base, Value* row,
                   Value* column, Value* batch) {
  constexpr int kWarpThreads = 32, kChunkBytes = 16;
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::SharedLayout& layout = buffer.layout;
  const int bytes = layout.ElementBytes();
  const int row_chunks = layout.Span() / kChunkBytes;
  // Neighbouring threads store neighbouring chunks of a row.
  Value* chunk = b.CreateURem(cx.lane, e.C32(row_chunks));
  Value* first = b.CreateUDiv(cx.lane, e.C32(row_chunks));
  Value* at = b.CreateAdd(column, b.CreateMul(chunk, e.C32(kChunkBytes / bytes)));
  Value* column_inside = b.CreateICmpULT(at, cx.Param(Binding::kN));
  const auto store = [&](Value* own) {
    Value* offset = e.TileOffset(layout, own, b.CreateShl(chunk, 4));
    const std::vector<Value*> words = e.LoadShared(e.Offset(copy_base, offset));
    const RowPlace place = PlaceRow(cx, ir::Operand::kD, rows, b.CreateAdd(row, own), batch);
    Value* element = b.CreateAdd(place.offset, b.CreateZExt(at, e.I64()));
    Value* address = b.CreateAdd(cx.Param(Binding::kBaseD), b.CreateMul(element, e.C64(bytes)));
    e.StoreGlobal(address, words, b.CreateAnd(Kept(cx, own, place.inside), column_inside));
  };
  const int rows_at_once = kWarpThreads / row_chunks;
  for (int i = 0; i < layout.outer; i += rows_at_once) {
    Value* own = b.CreateAdd(first, e.C32(i));
    if (i + rows_at_once <= layout.outer) {
      store(own);
    } else {  // a copy of fewer rows than the warp stores at once
      e.If(b.CreateICmpULT(own, e.C32(layout.outer)), [&] { store(own); });
    }
  }
  e.WarpSync();  // the copy may be written again
}

namespace {

// A fragment of 16 columns of D, transposed on the way to rows of 32 bytes: stmatrix.trans takes matrices of 8 x 8, two
// side by side in the rows of a copy, as many pairs of them at once as the fragment has.
void StoreMatrices(const RoleContext& cx, const Fragment& fragment, const ir::SharedLayout& layout, Value* copy_base) {
  constexpr int kMatrixRows = 8, kMatrixBytes = 16, kRegistersOfPair = 4;
  Emitter& e = cx.e;
  auto& b = e.ir();
  const int pairs = fragment.layout.Registers() / kRegistersOfPair;
  const int at_once = pairs % 2 == 0 ? 2 : 1;
  // Lane l names row l mod 8 of matrix l / 8; of a pair, the second one lies beside the first.
  Value* matrix = b.CreateLShr(cx.lane, 3);
  Value* byte = b.CreateMul(b.CreateAnd(matrix, e.C32(1)), e.C32(kMatrixBytes));
  Value* own_pair = b.CreateAnd(b.CreateLShr(matrix, 1), e.C32(at_once - 1));
  Value* row = b.CreateAdd(b.CreateMul(own_pair, e.C32(kMatrixRows)), b.CreateAnd(cx.lane, e.C32(kMatrixRows - 1)));
  for (int pair = 0; pair < pairs; pair += at_once) {
    Value* offset = e.TileOffset(layout, b.CreateAdd(row, e.C32(pair * kMatrixRows)), byte);
    e.StoreMatricesTransposed(
        e.Offset(copy_base, offset),
        e.NarrowWords(layout.type, Run(fragment, pair * kRegistersOfPair, at_once * kRegistersOfPair)));
  }
}

}  // namespace

void EmitStageStore(const RoleContext& cx, const Fragment& fragment, const ir::Buffer& buffer, Value* copy_base) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::SharedLayout& layout = buffer.layout;
  LS_CHECK(layout.Columns() == 1, "a staging buffer is one swizzle span wide");
  const ElementIndex index(cx, fragment.layout, e.C32(0), e.C32(0));
  const int bytes = layout.ElementBytes();
  const bool transposed = cx.program.row_axis == ir::Axis::kN;
  if (transposed && bytes == 2 && fragment.layout.kind == ir::FragmentKind::kMma16x8) {
    StoreMatrices(cx, fragment, layout, copy_base);
  } else {
    // Registers that one store takes: 16 bytes of a row, or the pair that a lane holds, or one across the rows.
    const int run = transposed ? 1 : std::min(fragment.layout.Run(), 16 / bytes);
    for (int j = 0; j < fragment.layout.Registers(); j += run) {
      Value* row = b.CreateAdd(index.lane_row, e.C32(index.RowOf(j)));
      Value* byte = b.CreateAdd(b.CreateMul(index.lane_column, e.C32(bytes)), e.C32(index.ColumnOf(j) * bytes));
      Value* to = e.Offset(copy_base, e.TileOffset(layout, row, byte));
      if (run * bytes >= 4) {
        e.StoreShared(to, e.NarrowWords(layout.type, Run(fragment, j, run)));
      } else {
        e.StoreShared16(to, e.NarrowHalf(layout.type, Run(fragment, j, run)));
      }
    }
  }
  e.FenceProxyAsyncShared();
  e.WarpSync();
}

}  // namespace laneshift::compiler
