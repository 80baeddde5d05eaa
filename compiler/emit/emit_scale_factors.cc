// Scale factors of 8-bit operands, and promoted sums, which are multiplied by them.
#include <algorithm>
#include <utility>

#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_program.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

using ir::Binding;

Value* EmitLoadScaleFactor(const RoleContext& cx, Binding pointer) {
  Emitter& e = cx.e;
  return e.ir().CreateBitCast(e.LoadGlobal(cx.Param(pointer), 1, e.True())[0], e.F32());
}

// The byte is the exponent; 0 is 2^-127, half of the least normal number.
Value* EmitPowerOfTwo(Emitter& e, Value* byte) {
  constexpr int kMantissaBits = 23;
  auto& b = e.ir();
  Value* least = e.C32(1u << (kMantissaBits - 1));
  Value* bits = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, b.CreateShl(byte, kMantissaBits), least);
  return b.CreateBitCast(bits, e.F32());
}

namespace {

// Runs of an extent that have a scale factor.
Value* RunsOf(const RoleContext& cx, Binding extent) {
  Emitter& e = cx.e;
  return e.ir().CreateUDiv(e.ir().CreateAdd(cx.Param(extent), e.C32(kScaleRun - 1)), e.C32(kScaleRun));
}

}  // namespace

ScaleFactors EmitLoadScaleFactors(const RoleContext& cx, const ir::ScaleFactorsAttrs& attrs, const ScalePlace& place,
                                  const ScaleMatrices& matrices) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const auto least_of = [&](Value* index, Value* extent) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, b.CreateSub(extent, e.C32(1)));
  };
  const auto wide = [&](Value* factor, Value* other) {
    return b.CreateMul(b.CreateZExt(factor, e.I64()), b.CreateZExt(other, e.I64()));
  };
  Value* k_runs = RunsOf(cx, Binding::kK);
  Value* n_runs = RunsOf(cx, Binding::kN);
  Value* rows = cx.Param(attrs.rows);
  // Beyond the last one the last is loaded again: what it multiplies is zero, or not stored. So the load needs no
  // predicate, and its address is one multiplication and addition to what no block of K changes.
  Value* own_run = least_of(place.block, k_runs);
  // `first`: the index in a matrix of the factor of block 0; `step`: from block to block. Of packed ones of A, four
  // blocks are one; of those of B each is a byte. They become f32 where they are read: here that would wait for the
  // load.
  const auto load = [&](Binding base, Value* matrix, Value* lines, Value* pitch, Value* first, Value* step,
                        Value* block) {
    const bool words = base == Binding::kBaseScaleA;
    const uint64_t bytes = attrs.packed && !words ? 1 : 4;
    Value* fixed = b.CreateAdd(b.CreateMul(wide(matrix, lines), b.CreateZExt(pitch, e.I64())), first);
    Value* start = b.CreateAdd(cx.Param(base), b.CreateMul(fixed, e.C64(bytes)));
    Value* line = attrs.packed && words ? b.CreateLShr(block, 2) : block;
    Value* address = b.CreateAdd(start, b.CreateMul(wide(line, step), e.C64(bytes)));
    if (!attrs.packed) return b.CreateBitCast(e.LoadGlobal(address, 1, e.True())[0], e.F32());
    if (words) address = b.CreateAdd(address, b.CreateZExt(b.CreateAnd(block, e.C32(3)), e.I64()));
    return b.CreateBitCast(e.LoadGlobalByte(address), e.F32());
  };
  const auto up_to = [&](Value* count, uint32_t unit) {
    return b.CreateAnd(b.CreateAdd(count, e.C32(unit - 1)), e.C32(~(unit - 1)));
  };
  Value* lines_of_a = attrs.packed ? b.CreateLShr(up_to(k_runs, ir::PackedFactors::kOfWord), 2) : k_runs;
  Value* pitch_of_b = attrs.packed ? up_to(k_runs, ir::PackedFactors::kOfLine) : k_runs;
  const ElementIndex index(cx, {attrs.fragment, 8}, place.row, place.column);
  // All lanes load the same factors of B. If ptxas knows, it moves them to uniform registers, at once: between the MMA
  // instructions, which then wait for the load. The sign of a row is 0 in every lane, which ptxas does not know.
  Value* of_lane = b.CreateSub(own_run, b.CreateAShr(index.Row(0), 31));
  std::vector<Value*> of_columns;
  for (int i = 0; i < attrs.runs; ++i) {
    Value* own = b.CreateAdd(b.CreateUDiv(place.column, e.C32(kScaleRun)), e.C32(static_cast<uint32_t>(i)));
    of_columns.push_back(load(Binding::kBaseScaleB, matrices.of_b, n_runs, pitch_of_b,
                              wide(least_of(own, n_runs), pitch_of_b), e.C32(1), of_lane));
  }
  // Not multiplied here: that would wait for the loads, which are needed only when the products are done.
  ScaleFactors factors{.columns = std::move(of_columns)};
  for (int half = 0; half < ScaleRowsOf(attrs.fragment); ++half) {
    Value* row = index.Row(2 * half);
    if (attrs.rows == Binding::kStoredRowsA) row = FindRowOfA(cx, row).row;
    Value* own = b.CreateZExt(least_of(row, rows), e.I64());
    factors.rows.push_back(load(Binding::kBaseScaleA, matrices.of_a, lines_of_a, rows, own, rows, own_run));
  }
  return factors;
}

namespace {

constexpr int kLineBytes = ir::kFactorsOfLine * 4;

// The scale factors in the slot's two tiles.
class SlotFactors {
 public:
  SlotFactors(const RoleContext& cx, const ir::SlotScaleFactorsAttrs& attrs, Value* of_a,
              const std::vector<Value*>& of_b, const ScalePlace& place)
      : e_(cx.e), attrs_(attrs), place_(place), index_(cx, {attrs.fragment, 8}, place.row, place.column), of_a_(of_a) {
    const int runs = ir::ScaleRunsOfTile(cx.program.tile_n);
    auto& b = e_.ir();
    for (int run = 0; run < runs; ++run) {
      const auto number = static_cast<uint32_t>(run);
      if (attrs_.b_vector) {
        Value* word = b.CreateAdd(place_.block, b.CreateMul(RunsOf(cx, Binding::kK), e_.C32(number)));
        of_b_.push_back(AtWord(of_b[number], word));
      } else {
        Value* word = attrs_.packed ? b.CreateLShr(place_.block, 2) : place_.block;
        of_b_.push_back(e_.Offset(AtWord(of_b[0], word), e_.C32(number * kLineBytes)));
      }
    }
  }

  // Rows of A along the accumulator's rows: those that a lane holds.
  std::vector<Value*> OfRowsOfA() const {
    std::vector<Value*> factors;
    for (int half = 0; half < ScaleRowsOf(attrs_.fragment); ++half)
      factors.push_back(Read(e_.Offset(of_a_, e_.ir().CreateShl(index_.Row(2 * half), 2))));
    return factors;
  }
  // Along its columns: those that a lane holds, as many at once as are adjacent and aligned.
  std::vector<Value*> OfColumnsOfA(int columns) const {
    const ir::FragmentLayout layout{attrs_.fragment, columns};
    const int at_once = attrs_.aligned ? std::min(layout.Run(), ir::kFactorsOfLine) : 1;
    Value* first = e_.Offset(of_a_, e_.ir().CreateShl(index_.first_row, 2));
    std::vector<Value*> factors;
    for (int j = 0; j < layout.Registers(); ++j) {
      if (layout.RowOf(j) != 0 || layout.ColumnOf(j) % at_once != 0) continue;
      Value* from = e_.Offset(first, e_.C32(static_cast<uint32_t>(4 * (attrs_.column + layout.ColumnOf(j)))));
      for (Value* word : e_.LoadShared(from, at_once)) factors.push_back(AsFactor(word));
    }
    return factors;
  }
  // Columns of B along the accumulator's rows: a warp has those of one run.
  Value* OfRowsOfB() const {
    auto& b = e_.ir();
    Value* own = of_b_.front();
    for (size_t run = 1; run < of_b_.size(); ++run) {
      Value* later = b.CreateICmpUGE(place_.column, e_.C32(static_cast<uint32_t>(run * kScaleRun)));
      own = b.CreateSelect(later, of_b_[run], own);
    }
    return Read(own);
  }
  // Along its columns: columns `first` of the tile and the next ones that share a factor have that of the run in which
  // they are, wherever in its first run the tile begins.
  std::vector<Value*> OfColumnsOfB(int columns, int shared) const {
    auto& b = e_.ir();
    constexpr int kRun = static_cast<int>(kScaleRun);
    std::vector<Value*> of_runs, factors;
    for (Value* of_run : of_b_) of_runs.push_back(Read(of_run));
    for (int first = 0; first < columns; first += shared) {
      const int least = first / kRun, most = (kRun - shared + first) / kRun;
      Value* own = of_runs[static_cast<size_t>(least)];
      for (int run = least + 1; run <= most; ++run) {
        Value* later = b.CreateICmpUGE(place_.column, e_.C32(static_cast<uint32_t>(run * kRun - first)));
        own = b.CreateSelect(later, of_runs[static_cast<size_t>(run)], own);
      }
      factors.push_back(own);
    }
    return factors;
  }

 private:
  // A word of a line.
  Value* AtWord(Value* line, Value* word) const {
    auto& b = e_.ir();
    return e_.Offset(line, b.CreateShl(b.CreateAnd(word, e_.C32(ir::kFactorsOfLine - 1)), 2));
  }
  Value* AsFactor(Value* word) const {
    auto& b = e_.ir();
    if (!attrs_.packed) return b.CreateBitCast(word, e_.F32());
    Value* byte = b.CreateShl(b.CreateAnd(place_.block, e_.C32(ir::PackedFactors::kOfWord - 1)), 3);
    return EmitPowerOfTwo(e_, b.CreateAnd(b.CreateLShr(word, byte), e_.C32(0xff)));
  }
  Value* Read(Value* pointer) const { return AsFactor(e_.LoadSharedWord(pointer)); }

  Emitter& e_;
  const ir::SlotScaleFactorsAttrs& attrs_;
  const ScalePlace& place_;
  const ElementIndex index_;
  Value* const of_a_;
  std::vector<Value*> of_b_;  // of each run of columns
};

}  // namespace

ScaleFactors EmitSlotScaleFactors(const RoleContext& cx, const ir::SlotScaleFactorsAttrs& attrs, Value* of_a,
                                  const std::vector<Value*>& of_b, const ScalePlace& place) {
  // Across it ptxas moves no read. Else some come between the MMAs, and the next of these waits for them.
  if (attrs.after_mmas) cx.e.WarpSync();
  const SlotFactors slot(cx, attrs, of_a, of_b, place);
  const int all = cx.program.Columns(), columns = attrs.columns == 0 ? all : attrs.columns;
  if (cx.program.row_axis == ir::Axis::kN)
    return {.rows = {slot.OfRowsOfB()}, .columns = slot.OfColumnsOfA(columns), .first = attrs.column, .shared = 0};
  const int shared = ir::ColumnsOfScale(all);
  return {.rows = slot.OfRowsOfA(), .columns = slot.OfColumnsOfB(all, shared), .shared = shared};
}

void EmitAddPromoted(const RoleContext& cx, const std::vector<Variable>& sums, const Fragment& fragment, int column,
                     const ScaleFactors* factors) {
  auto& b = cx.e.ir();
  const ir::FragmentLayout& layout = fragment.layout;
  const int first = ir::FragmentLayout{layout.kind, column}.Registers();
  std::vector<std::vector<Value*>> products;  // of the scale factors: of those of rows with those of columns
  for (Value* row : factors == nullptr ? std::vector<Value*>{} : factors->rows) {
    std::vector<Value*>& of_row = products.emplace_back();
    for (Value* of_column : factors->columns) of_row.push_back(b.CreateFMul(row, of_column));
  }
  for (int j = 0; j < layout.Registers(); ++j) {
    Value* term = fragment.values[static_cast<size_t>(j)];
    if (factors != nullptr) {
      const std::vector<Value*>& of_row = layout.RowOf(j) == 0 ? products.front() : products.back();
      term = b.CreateFMul(term, of_row[factors->OfColumn(layout, column % cx.program.Columns() + layout.ColumnOf(j))]);
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

}  // namespace laneshift::compiler
