// Steps of the epilogue on fragments: functions, operands, gated linear units and reductions.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/check.h"
#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

Value* CombineWith(Emitter& e, ir::Combine how, Value* value, Value* other) {
  return how == ir::Combine::kAdd ? e.ir().CreateFAdd(value, other) : e.ir().CreateFMul(value, other);
}

// Part of a vector along columns that belongs to the group of output channels or of rows, each with `columns` of them;
// the matrices of a batch share it.
Value* PartOfGroup(const RoleContext& cx, ir::RowMap rows, Value* batch, Value* columns) {
  return rows != ir::RowMap::kMatrix ? cx.e.ir().CreateMul(batch, columns) : cx.e.C32(0);
}

// Columns of B, before the gated linear unit, or those after it.
Value* ColumnsOf(const RoleContext& cx, bool gated) { return gated ? ColumnsOfD(cx) : cx.Param(Binding::kN); }

// The i-th number of a function, whose first is `number` of the epilogue; null if it has fewer.
Value* NumberOf(const RoleContext& cx, ir::Function function, int number, int i) {
  return i < ir::NumbersOf(function) ? cx.Param(ir::EpilogueNumber(number + i)) : nullptr;
}

Value* AddressOf(const RoleContext& cx, Binding base, Value* index, int64_t bytes) {
  auto& b = cx.e.ir();
  return b.CreateAdd(cx.Param(base), b.CreateMul(b.CreateZExt(index, cx.e.I64()), cx.e.C64(bytes)));
}

// The index of the column in the vector, counted through pairs.
Value* PlaceOfColumn(const RoleContext& cx, bool halves, Value* column) {
  auto& b = cx.e.ir();
  if (!halves) return column;
  Value* half = b.CreateMul(b.CreateAnd(column, cx.e.C32(1)), cx.Param(Binding::kColumns));
  return b.CreateAdd(b.CreateLShr(column, 1), half);
}

// One element of a vector, or one scale factor of a block, for each register; loaded once where it is the same.
class VectorLoads {
 public:
  VectorLoads(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::CombineVectorAttrs& attrs,
              const ElementIndex& index, Value* batch)
      : cx_(cx),
        attrs_(attrs),
        index_(index),
        columns_(ColumnsOf(cx, attrs.gated)),
        part_(PartOf(cx, attrs, batch, columns_)),
        block_run_(RunInBlock(cx, layout, attrs)) {}

  Value* Of(int j) {
    const bool by_row = attrs_.axis == BiasAxis::kM, by_column = attrs_.axis == BiasAxis::kN;
    const int constant = by_row ? index_.RowOf(j) : by_column ? index_.ColumnOf(j) : StartOfRun(j);
    auto [at, fresh] = loaded_.try_emplace(constant, nullptr);
    if (!fresh) return at->second;
    if (by_row && IsIndexed()) return at->second = OfIndexedRow(j);
    auto& b = cx_.e.ir();
    Value* inside =
        by_column ? b.CreateICmpULT(index_.Column(j), columns_) : b.CreateICmpULT(index_.Row(j), EndOfRows(cx_));
    if (!by_row && !by_column) inside = b.CreateAnd(inside, b.CreateICmpULT(index_.Column(j), columns_));
    // One address, or one in each half, from which all offsets are constants that fit into the instruction.
    const int half = attrs_.halves ? constant % 2 : 0, distance = attrs_.halves ? constant / 2 : constant;
    Value*& from = first_[static_cast<size_t>(half)];
    if (from == nullptr && (by_row || by_column)) {
      Value* first = by_row ? FirstRow() : FirstColumn(half);
      from = AddressOf(cx_, attrs_.base, first, DataTypeBytes(attrs_.type));
    }
    Value* address = from == nullptr
                         ? AddressOf(cx_, attrs_.base, BlockOf(j), DataTypeBytes(attrs_.type))
                         : b.CreateAdd(from, cx_.e.C64(static_cast<uint64_t>(distance * DataTypeBytes(attrs_.type))));
    at->second = LoadRun(cx_.e, attrs_.type, address, 1, inside)[0];
    return at->second;
  }

 private:
  // What comes before the part of the vector that belongs to the group of columns, or to the matrix of a batch.
  static Value* PartOf(const RoleContext& cx, const ir::CombineVectorAttrs& attrs, Value* batch, Value* columns) {
    const bool of_batch = attrs.factors && attrs.rows == ir::RowMap::kMatrix;
    if (!of_batch) return PartOfGroup(cx, attrs.rows, batch, columns);
    return cx.e.ir().CreateMul(batch, attrs.axis == BiasAxis::kM ? cx.Param(Binding::kM) : columns);
  }
  // Whether an index vector says which element a row of the product has.
  bool IsIndexed() const {
    return attrs_.rows == ir::RowMap::kGroups &&
           cx_.program.FindParam(attrs_.factors ? Binding::kRowIndicesA : Binding::kRowIndicesD) != nullptr;
  }
  Value* OfIndexedRow(int j) const {
    const StoredRow stored = attrs_.factors ? FindRowOfA(cx_, index_.Row(j)) : FindRowOfD(cx_, index_.Row(j));
    Value* address = AddressOf(cx_, attrs_.base, stored.row, DataTypeBytes(attrs_.type));
    return LoadRun(cx_.e, attrs_.type, address, 1, stored.inside)[0];
  }
  Value* FirstRow() const {
    if (!attrs_.factors || attrs_.rows != ir::RowMap::kMatrix) return index_.first_row;
    return cx_.e.ir().CreateAdd(index_.first_row, part_);
  }
  // Columns of the fragment that are in one block wherever the tile begins, which need not divide a block: fragments
  // begin at multiples of this. Its rows always divide one.
  static int RunInBlock(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::CombineVectorAttrs& attrs) {
    const bool gated = attrs.gated && cx.program.row_axis == ir::Axis::kM;
    const int of_tile = cx.program.Columns() / (gated ? 2 : 1);
    return std::gcd(std::gcd(layout.columns, of_tile), static_cast<int>(kScaleRun));
  }
  int StartOfRun(int j) const {
    const int column = cx_.program.row_axis == ir::Axis::kN ? index_.RowOf(j) : index_.ColumnOf(j);
    return column / block_run_ * block_run_;
  }
  // Where a lane has columns of both halves, its first one is of the first.
  Value* FirstColumn(int half) const {
    auto& b = cx_.e.ir();
    Value* column = b.CreateAdd(index_.first_column, cx_.e.C32(half));
    return b.CreateAdd(PlaceOfColumn(cx_, attrs_.halves, column), part_);
  }
  Value* BlockOf(int j) const {
    auto& b = cx_.e.ir();
    Value* run = cx_.e.C32(static_cast<uint32_t>(kScaleRun));
    Value* blocks = b.CreateUDiv(b.CreateAdd(columns_, cx_.e.C32(static_cast<uint32_t>(kScaleRun - 1))), run);
    return b.CreateAdd(b.CreateMul(b.CreateUDiv(index_.Row(j), run), blocks), b.CreateUDiv(index_.Column(j), run));
  }

  const RoleContext& cx_;
  const ir::CombineVectorAttrs attrs_;
  const ElementIndex& index_;
  Value* columns_;
  Value* part_;
  const int block_run_;
  std::array<Value*, 2> first_{};  // addresses of the elements of the lane's first row or column, in each half
  std::map<int, Value*> loaded_;   // by the constant part of the index
};

// The reductions of a fragment: first of each lane's own elements, then of all lanes that have some of the same row or
// column. Sums are f32, magnitudes the bits of f32: those of larger numbers are larger, and NaN is above all.
class FragmentReduction {
 public:
  // `key` is the constant part of the row or column.
  struct Result {
    Value* value;
    int key;
  };
  // Those that this lane stores, if it does; `shift` is added to every key.
  struct OfLane {
    std::vector<Result> results;
    Value *shift, *stores;
  };

  FragmentReduction(const RoleContext& cx, const Fragment& fragment, const ir::ReduceAttrs& attrs,
                    const ElementIndex& index, Value* batch)
      : cx_(cx), attrs_(attrs), index_(index), columns_(ColumnsOf(cx, attrs.gated)) {
    auto& b = cx.e.ir();
    const auto zero = sum() ? llvm::ConstantFP::get(cx.e.F32(), 0) : static_cast<llvm::Constant*>(b.getInt32(0));
    // Compared with constants: column indices would be held for the next block of rows, which has the same.
    Value* left = b.CreateSub(columns_, index.first_column);
    // Only elements inside are reduced; a row or column that is outside is not stored. In a whole fragment, rows or
    // columns are reduced first, of which a lane has many, so that each of their indices is compared once.
    const BiasAxis across = cx.program.row_axis == ir::Axis::kN ? BiasAxis::kM : BiasAxis::kN;
    const BiasAxis axis = attrs.axis == BiasAxis::kNone ? across : attrs.axis;
    std::map<int, Value*> others;  // inside, by the constant part of the other axis
    std::map<int, size_t> places;
    for (int j = 0; j < fragment.layout.Registers(); ++j) {
      Value* own = fragment.values[static_cast<size_t>(j)];
      if (!sum()) own = b.CreateAnd(b.CreateBitCast(own, cx.e.I32()), cx.e.C32(0x7fffffff));
      const int row = index.RowOf(j), column = index.ColumnOf(j);
      Value*& inside = others[axis == BiasAxis::kM ? column : row];
      if (inside == nullptr) {
        inside = axis == BiasAxis::kM ? ColumnInside(left, column) : RowInside(cx.e.C32(row), batch);
      }
      own = b.CreateSelect(inside, own, zero);
      const int key = axis == BiasAxis::kM ? row : column;
      const auto [place, fresh] = places.try_emplace(key, results_.size());
      if (fresh) {
        results_.push_back({own, key});
      } else {
        results_[place->second].value = Both(results_[place->second].value, own);
      }
    }
    if (attrs.axis != BiasAxis::kNone) return;
    Value* all = nullptr;
    for (const Result& row_index : results_) {
      Value* inside =
          axis == BiasAxis::kM ? RowInside(cx.e.C32(row_index.key), batch) : ColumnInside(left, row_index.key);
      Value* own = b.CreateSelect(inside, row_index.value, zero);
      all = all == nullptr ? own : Both(all, own);
    }
    results_ = {{all, 0}};
  }

  Value* columns() const { return columns_; }

  // With an even number of reductions, each of two partners takes half of them: one of every two adjacent ones, whose
  // keys have a constant distance. Else both have all.
  OfLane OverLanes() const {
    constexpr int kWarpThreads = 32;
    auto& b = cx_.e.ir();
    OfLane own{results_, cx_.e.C32(0), cx_.e.True()};
    std::vector<Result>& results = own.results;
    Value* lane = cx_.e.Anew(cx_.lane);
    const int folded = attrs_.axis == BiasAxis::kM   ? index_.ColumnLanes()
                       : attrs_.axis == BiasAxis::kN ? index_.RowLanes()
                                                     : kWarpThreads - 1;
    for (int lanes = 1; lanes < kWarpThreads; lanes *= 2) {
      if ((folded & lanes) == 0) continue;
      Value* upper = b.CreateICmpNE(b.CreateAnd(lane, cx_.e.C32(static_cast<uint32_t>(lanes))), cx_.e.C32(0));
      if (results.size() % 2 != 0) {
        for (Result& result : results) result.value = Both(result.value, Exchanged(result.value, lanes));
        own.stores = b.CreateAnd(own.stores, b.CreateNot(upper));
        continue;
      }
      const size_t half = results.size() / 2;
      const int distance = results[1].key - results[0].key;
      for (size_t i = 0; i < half; ++i) {
        const Result low = results[2 * i], high = results[2 * i + 1];
        LS_CHECK(high.key - low.key == distance, "reductions at ", low.key, " and ", high.key,
                 " are partners at another distance");
        Value* received = Exchanged(b.CreateSelect(upper, low.value, high.value), lanes);
        results[i] = {Both(b.CreateSelect(upper, high.value, low.value), received), low.key};
      }
      results.resize(half);
      own.shift = b.CreateAdd(own.shift, b.CreateSelect(upper, cx_.e.C32(distance), cx_.e.C32(0)));
    }
    return own;
  }

  // Whether D has the row, `key` after the lane's first one.
  Value* RowInside(Value* key, Value* batch) const {
    auto& b = cx_.e.ir();
    Value* row = b.CreateAdd(index_.first_row, key);
    Value* inside = PlaceRow(cx_, ir::Operand::kD, attrs_.rows, row, batch).inside;
    return InLiveRow(cx_, b.CreateAdd(index_.lane_row, key), inside);
  }

 private:
  bool sum() const { return attrs_.how == ir::Reduction::kSum; }
  Value* ColumnInside(Value* left, int column) const {
    return cx_.e.ir().CreateICmpSGT(left, cx_.e.C32(static_cast<uint32_t>(column)));
  }
  Value* Both(Value* x, Value* y) const {
    auto& b = cx_.e.ir();
    return sum() ? b.CreateFAdd(x, y) : b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, x, y);
  }
  Value* Exchanged(Value* value, int lanes) const {
    auto& b = cx_.e.ir();
    return b.CreateBitCast(cx_.e.ExchangeLanes(b.CreateBitCast(value, cx_.e.I32()), lanes), value->getType());
  }

  const RoleContext& cx_;
  const ir::ReduceAttrs attrs_;
  const ElementIndex& index_;
  Value* columns_;
  std::vector<Result> results_;
};

}  // namespace

Fragment EmitMap(const RoleContext& cx, const Fragment& fragment, const ir::MapAttrs& attrs) {
  const auto number = [&](int i) { return NumberOf(cx, attrs.function, attrs.number, i); };
  Fragment mapped{fragment.layout, {}};
  for (Value* value : fragment.values) {
    mapped.values.push_back(EmitFunction(cx.e, attrs.function, attrs.approximate, value, number(0), number(1)));
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

std::vector<Value*> EmitInside(const RoleContext& cx, const ir::FragmentLayout& layout, ir::RowMap rows, bool gated,
                               Value* row, Value* column, Value* batch) {
  auto& b = cx.e.ir();
  const ElementIndex index(cx, layout, row, column);
  Value* columns = ColumnsOf(cx, gated);
  std::map<int, Value*> of_rows;  // by the constant part of the row
  std::vector<Value*> inside;
  for (int j = 0; j < layout.Registers(); ++j) {
    Value*& of_row = of_rows[index.RowOf(j)];
    if (of_row == nullptr) {
      of_row = InLiveRow(cx, b.CreateAdd(index.lane_row, cx.e.C32(static_cast<uint32_t>(index.RowOf(j)))),
                         PlaceRow(cx, ir::Operand::kD, rows, index.Row(j), batch).inside);
    }
    inside.push_back(b.CreateAnd(of_row, b.CreateICmpULT(index.Column(j), columns)));
  }
  return inside;
}

// A thread of the role for each row.
void EmitPrefetchMatrix(const RoleContext& cx, const ir::PrefetchMatrixAttrs& attrs, Value* row, Value* column,
                        Value* batch) {
  auto& b = cx.e.ir();
  const int bytes = static_cast<int>(DataTypeBytes(attrs.type));
  const auto constant = [&](int value) { return cx.e.C32(static_cast<uint32_t>(value)); };
  Value* columns = ColumnsOf(cx, attrs.operand);
  Value* left = b.CreateSelect(b.CreateICmpULT(column, columns), b.CreateSub(columns, column), constant(0));
  Value* wanted = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, constant(attrs.tile_columns));
  Value* size = b.CreateAnd(b.CreateMul(wanted, constant(bytes)), constant(~15));
  Value* any = b.CreateICmpNE(size, constant(0));
  for (int first = 0; first < attrs.tile_rows; first += cx.threads) {
    Value* own = b.CreateAdd(cx.thread, constant(first));
    const RowPlace place = PlaceRow(cx, attrs.operand, attrs.rows, b.CreateAdd(row, own), batch);
    Value* inside = b.CreateAnd(place.inside, any);
    if (first + cx.threads > attrs.tile_rows)
      inside = b.CreateAnd(inside, b.CreateICmpULT(own, constant(attrs.tile_rows)));
    Value* offset = b.CreateAdd(place.offset, b.CreateZExt(column, cx.e.I64()));
    Value* address = b.CreateAdd(cx.Param(attrs.base), b.CreateMul(offset, cx.e.C64(bytes)));
    cx.e.PrefetchGlobal(address, size, inside);
  }
}

Fragment EmitCombineMatrix(const RoleContext& cx, const Fragment& fragment, const ir::CombineMatrixAttrs& attrs,
                           Value* row, Value* column, Value* batch) {
  const ir::GlobalAttrs place{attrs.operand, attrs.base, attrs.type, attrs.vector, attrs.rows};
  Fragment combined = EmitLoadMatrix(cx, fragment.layout, place, row, column, batch);
  for (size_t j = 0; j < combined.values.size(); ++j) {
    Value*& other = combined.values[j];
    if (attrs.beta != 0) other = cx.e.ir().CreateFMul(other, cx.Param(Binding::kBeta));
    if (attrs.derivative != ir::Function::kIdentity) {
      other = EmitDerivative(cx.e, attrs.derivative, other, NumberOf(cx, attrs.derivative, attrs.number, 0),
                             NumberOf(cx, attrs.derivative, attrs.number, 1));
    }
    other = CombineWith(cx.e, attrs.how, fragment.values[j], other);
  }
  return combined;
}

Fragment EmitLoadVector(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::CombineVectorAttrs& attrs,
                        Value* row, Value* column, Value* batch) {
  const ElementIndex index(cx, layout, row, column);
  VectorLoads vector(cx, layout, attrs, index, batch);
  Fragment loaded{layout, {}};
  for (int j = 0; j < layout.Registers(); ++j) loaded.values.push_back(vector.Of(j));
  return loaded;
}

Fragment EmitCombineVector(const RoleContext& cx, const Fragment& fragment, const ir::CombineVectorAttrs& attrs,
                           Value* row, Value* column, Value* batch) {
  Fragment combined = EmitLoadVector(cx, fragment.layout, attrs, row, column, batch);
  for (size_t j = 0; j < combined.values.size(); ++j) {
    combined.values[j] = CombineWith(cx.e, attrs.how, fragment.values[j], combined.values[j]);
  }
  return combined;
}

namespace {

Value* Gate(const RoleContext& cx, const ir::GateAttrs& attrs, Value* gate, Value* other) {
  gate = EmitFunction(cx.e, attrs.function, attrs.approximate, gate, nullptr, nullptr);
  return cx.e.ir().CreateFMul(gate, other);
}

// Of lanes that differ in one bit, `odd` is that bit of this lane: half of what each has is for the other one.
Value* Exchange(const RoleContext& cx, Value* sent, int lanes) {
  auto& b = cx.e.ir();
  return b.CreateBitCast(cx.e.ExchangeLanes(b.CreateBitCast(sent, cx.e.I32()), lanes), cx.e.F32());
}
Value* IsOdd(const RoleContext& cx, int lanes) {
  auto& b = cx.e.ir();
  return b.CreateICmpNE(b.CreateAnd(cx.lane, cx.e.C32(lanes)), cx.e.C32(0));
}

// One value for every two registers of `pairs`, which are a pair. Where a lane holds whole rows, pairs are adjacent.
// Where four lanes share rows, each has one column of every four that result; adjacent lanes exchange halves, so that
// each has two adjacent ones again.
Fragment AdjacentColumns(const RoleContext& cx, const ir::FragmentLayout& pairs, const std::vector<Value*>& gated) {
  auto& b = cx.e.ir();
  Fragment result{pairs.GatedColumns(), gated};
  if (pairs.kind == ir::FragmentKind::kRowPerLane) return result;
  // Of 16 columns: rows l/4 and l/4 + 8 of the first 8, then of the second 8.
  Value* odd = IsOdd(cx, 1);
  for (size_t group = 0; group < gated.size(); group += 4) {
    for (size_t half = 0; half < 2; ++half) {
      Value* low = gated[group + half];
      Value* high = gated[group + half + 2];
      Value* received = Exchange(cx, b.CreateSelect(odd, low, high), 1);
      result.values[group + 2 * half] = b.CreateSelect(odd, received, low);
      result.values[group + 2 * half + 1] = b.CreateSelect(odd, high, received);
    }
  }
  return result;
}

// Combined before lanes exchange, which then is once for each result.
Fragment GateColumns(const RoleContext& cx, const Fragment& fragment, const ir::GateAttrs& attrs) {
  std::vector<Value*> gated;
  for (size_t j = 0; j < fragment.values.size(); j += 2) {
    gated.push_back(Gate(cx, attrs, fragment.values[j], fragment.values[j + 1]));
  }
  return AdjacentColumns(cx, fragment.layout, gated);
}

Pairs PairsOfColumns(const RoleContext& cx, const Fragment& fragment) {
  std::vector<Value*> gates, ups;
  for (size_t j = 0; j < fragment.values.size(); j += 2) {
    gates.push_back(fragment.values[j]);
    ups.push_back(fragment.values[j + 1]);
  }
  return {AdjacentColumns(cx, fragment.layout, gates), AdjacentColumns(cx, fragment.layout, ups)};
}

// The rows of a pair are those of two lanes. Of two registers the first lane combines one and the second the other,
// so that each sends half of what it has: one exchange for each result.
Pairs PairsOfRows(const RoleContext& cx, const Fragment& fragment) {
  auto& b = cx.e.ir();
  const ir::FragmentLayout& pairs = fragment.layout;
  const ir::FragmentFacts::LaneParts& rows = pairs.Facts().lane_rows;
  const int lanes = 1 << (std::find(rows.begin(), rows.end(), 1) - rows.begin());
  Value* odd = IsOdd(cx, lanes);
  const int run = pairs.Facts().run;
  Pairs result{{pairs.GatedRows(), {}}, {pairs.GatedRows(), {}}};
  for (int group = 0; group < pairs.Registers(); group += 2 * run) {
    for (int j = group; j < group + run; ++j) {
      Value* first = fragment.values[j];
      Value* second = fragment.values[j + run];
      Value* received = Exchange(cx, b.CreateSelect(odd, first, second), lanes);
      result.gates.values.push_back(b.CreateSelect(odd, received, first));
      result.ups.values.push_back(b.CreateSelect(odd, second, received));
    }
  }
  return result;
}

}  // namespace

Pairs EmitPairs(const RoleContext& cx, const Fragment& fragment) {
  return cx.program.row_axis == ir::Axis::kM ? PairsOfColumns(cx, fragment) : PairsOfRows(cx, fragment);
}

Fragment EmitGate(const RoleContext& cx, const Fragment& fragment, const ir::GateAttrs& attrs) {
  if (cx.program.row_axis == ir::Axis::kM) return GateColumns(cx, fragment, attrs);
  const Pairs pairs = PairsOfRows(cx, fragment);
  Fragment gated{pairs.gates.layout, {}};
  for (size_t j = 0; j < pairs.gates.values.size(); ++j) {
    gated.values.push_back(Gate(cx, attrs, pairs.gates.values[j], pairs.ups.values[j]));
  }
  return gated;
}

namespace {

// Calls `write(index, value, inside)` for each reduction of the fragment that this lane has: its index, its word, and
// whether D has it.
template <typename Write>
void ForEachResult(const RoleContext& cx, const Fragment& fragment, const ir::ReduceAttrs& attrs, Value* row,
                   Value* column, Value* batch, const Write& write) {
  Emitter& e = cx.e;
  // Panels and blocks of rows are unrolled where accumulators are in registers: bounds that they share would be, too.
  const ElementIndex index(cx, fragment.layout, e.Anew(row), e.Anew(column));
  const FragmentReduction results(cx, fragment, attrs, index, batch);
  auto& b = e.ir();
  const FragmentReduction::OfLane own = results.OverLanes();
  for (const FragmentReduction::Result& result : own.results) {
    Value* key = b.CreateAdd(own.shift, e.C32(static_cast<uint32_t>(result.key)));
    Value* place = e.C32(0);
    Value* inside = own.stores;
    if (attrs.axis == BiasAxis::kM) {
      place = b.CreateAdd(index.first_row, key);
      inside = b.CreateAnd(inside, results.RowInside(key, batch));
      if (attrs.rows == ir::RowMap::kGroups) place = FindRowOfD(cx, place).row;
    }
    if (attrs.axis == BiasAxis::kN) {
      Value* own_column = b.CreateAdd(index.first_column, key);
      place = b.CreateAdd(PlaceOfColumn(cx, attrs.halves, own_column),
                          PartOfGroup(cx, attrs.rows, batch, results.columns()));
      inside = b.CreateAnd(inside, b.CreateICmpULT(own_column, results.columns()));
    }
    write(place, b.CreateBitCast(result.value, e.I32()), inside);
  }
}

// The first byte of the partial row that the fragment is reduced to. Everything is recomputed: what all fragments share
// would occupy registers.
Value* PartialRowOf(const RoleContext& cx, const ir::StorePartialRowAttrs& attrs, Value* summed, Value* batch,
                    Value* start, Value* piece) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  Value *unit = e.C32(attrs.unit), *rows_per_unit = e.C32(attrs.rows_per_unit);
  Value* row_index = b.CreateAdd(b.CreateMul(b.CreateUDiv(start, unit), rows_per_unit), piece);
  // The matrices of a batch share a result, and have separate partial rows.
  if (attrs.rows == ir::RowMap::kMatrix) {
    Value* units = b.CreateUDiv(b.CreateAdd(e.Anew(summed), e.C32(attrs.unit - 1)), unit);
    row_index = b.CreateAdd(row_index, b.CreateMul(batch, b.CreateMul(units, rows_per_unit)));
  }
  Value* length = e.Anew(attrs.axis == BiasAxis::kM ? cx.Param(Binding::kM) : ColumnsOf(cx, attrs.gated));
  // Groups of output channels are adjacent.
  if (attrs.axis == BiasAxis::kN && attrs.rows == ir::RowMap::kPixels)
    length = b.CreateMul(length, cx.Param(Binding::kBatch));
  Value* elements = b.CreateMul(b.CreateZExt(row_index, e.I64()), b.CreateZExt(LinePitch(e, length), e.I64()));
  return b.CreateAdd(cx.Param(attrs.base), b.CreateShl(elements, 2));
}

}  // namespace

void EmitReduce(const RoleContext& cx, const Fragment& fragment, const ir::ReduceAttrs& attrs, Value* row,
                Value* column, Value* batch) {
  ForEachResult(cx, fragment, attrs, row, column, batch, [&](Value* place, Value* word, Value* inside) {
    cx.e.ReduceGlobal(attrs.how == ir::Reduction::kSum, AddressOf(cx, attrs.base, place, 4), word, inside);
  });
}

void EmitStorePartialRow(const RoleContext& cx, const Fragment& fragment, const ir::StorePartialRowAttrs& attrs,
                         Value* row, Value* column, Value* batch, Value* start, Value* piece) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  Value* summed = cx.Param(attrs.axis == BiasAxis::kM ? Binding::kN : Binding::kM);
  start = e.Anew(start);
  Value* there = b.CreateICmpULT(start, summed);
  Value* row_index = PartialRowOf(cx, attrs, summed, batch, start, piece);
  ForEachResult(cx, fragment, attrs.Sums(), row, column, batch, [&](Value* place, Value* word, Value* inside) {
    Value* address = b.CreateAdd(row_index, b.CreateShl(b.CreateZExt(place, e.I64()), 2));
    e.StoreGlobal(address, {word}, b.CreateAnd(inside, there));
  });
}

}  // namespace laneshift::compiler
