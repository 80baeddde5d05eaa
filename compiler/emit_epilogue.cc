#include <functional>

#include "base/check.h"
#include "compiler/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

// Row and column of the element that register `j` of this lane holds, from the fragment's first row and column.
struct ElementIndex {
  ElementIndex(const RoleContext& cx, const ir::FragmentLayout& layout, Value* row, Value* column)
      : e(cx.e), fragment(layout) {
    auto& b = e.ir();
    const bool rows = fragment.kind == ir::FragmentKind::kRowPerLane;
    lane_row = rows ? cx.lane : b.CreateLShr(cx.lane, 2);
    lane_column = rows ? e.C32(0) : b.CreateShl(b.CreateAnd(cx.lane, e.C32(3)), 1);
    first_row = b.CreateAdd(row, lane_row);
    first_column = b.CreateAdd(column, lane_column);
  }
  Value* Row(int j) const { return e.ir().CreateAdd(first_row, e.C32(fragment.RowOf(j))); }
  Value* Column(int j) const { return e.ir().CreateAdd(first_column, e.C32(fragment.ColumnOf(j))); }

  Emitter& e;
  const ir::FragmentLayout fragment;
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
    // A fragment has at most two distinct rows a lane.
    for (int half = 0; half < 2; ++half) {
      const RowPlace place = PlaceRow(cx, attrs.operand, attrs.rows, index_.Row(2 * half), batch);
      Value* row_of_warp = b.CreateAdd(index_.lane_row, cx.e.C32(layout.RowOf(2 * half)));
      row_inside_[half] = Kept(cx, row_of_warp, place.inside);
      Value* offset = b.CreateAdd(place.offset, b.CreateZExt(index_.first_column, cx.e.I64()));
      row_base_[half] = b.CreateAdd(cx.Param(attrs.base), b.CreateMul(offset, cx.e.C64(bytes_)));
    }
  }
  Value* Address(int j) const {
    return cx_.e.ir().CreateAdd(row_base_[Half(j)], cx_.e.C64(index_.fragment.ColumnOf(j) * bytes_));
  }
  Value* Inside(int j) const {
    auto& b = cx_.e.ir();
    return b.CreateAnd(row_inside_[Half(j)], b.CreateICmpULT(index_.Column(j), cx_.Param(Binding::kN)));
  }

 private:
  int Half(int j) const { return index_.fragment.RowOf(j) == 0 ? 0 : 1; }

  const RoleContext& cx_;
  const ElementIndex index_;
  const int bytes_;
  Value* row_inside_[2];
  Value* row_base_[2];
};

// `values` as words of the type: f32 one each, 16-bit types two in a word.
std::vector<Value*> Words(Emitter& e, DataType type, const std::vector<Value*>& values, int first, int count) {
  std::vector<Value*> words;
  if (type == DataType::kF32) {
    for (int i = 0; i < count; ++i) words.push_back(e.ir().CreateBitCast(values[first + i], e.I32()));
  } else {
    for (int i = 0; i < count; i += 2) words.push_back(e.PackPair(type, values[first + i], values[first + i + 1]));
  }
  return words;
}

// The elements of `count` registers from `j` on, as f32.
std::vector<Value*> LoadRun(Emitter& e, DataType type, Value* address, int count, Value* inside) {
  if (type == DataType::kF32) {
    std::vector<Value*> values = e.LoadGlobal(address, count, inside);
    for (Value*& value : values) value = e.ir().CreateBitCast(value, e.F32());
    return values;
  }
  if (count == 1) return {e.Widen(type, e.LoadGlobal16(address, inside))};
  std::vector<Value*> values;
  for (Value* word : e.LoadGlobal(address, count / 2, inside)) {
    for (int half = 0; half < 2; ++half) values.push_back(e.Widen(type, e.Half(word, half)));
  }
  return values;
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

Fragment EmitCombineMatrix(const RoleContext& cx, const Fragment& fragment, const ir::CombineMatrixAttrs& attrs,
                           Value* row, Value* column, Value* batch) {
  const ir::GlobalAttrs place{attrs.operand, attrs.base, attrs.type, attrs.vector, attrs.rows};
  const GlobalFragment matrix(cx, fragment.layout, place, row, column, batch);
  Fragment combined{fragment.layout, {}};
  for (int j = 0; j < fragment.layout.Registers(); j += attrs.vector) {
    const std::vector<Value*> run = LoadRun(cx.e, attrs.type, matrix.Address(j), attrs.vector, matrix.Inside(j));
    for (int i = 0; i < attrs.vector; ++i) {
      Value* other = attrs.beta != 0 ? cx.e.ir().CreateFMul(run[i], cx.Param(Binding::kBeta)) : run[i];
      if (attrs.derivative != ir::Function::kIdentity) other = EmitDerivative(cx.e, attrs.derivative, other);
      combined.values.push_back(CombineWith(cx.e, attrs.how, fragment.values[j + i], other));
    }
  }
  return combined;
}

Fragment EmitCombineVector(const RoleContext& cx, const Fragment& fragment, const ir::CombineVectorAttrs& attrs,
                           Value* row, Value* column, Value* batch) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ElementIndex index(cx, fragment.layout, row, column);
  const bool by_row = attrs.axis == BiasAxis::kM;
  Value* limit = cx.Param(by_row ? Binding::kM : Binding::kN);
  // Each group of output channels has its own part of the vector; the matrices of a batch share it.
  Value* part = attrs.rows == ir::RowMap::kPixels ? b.CreateMul(batch, limit) : e.C32(0);
  std::map<int, Value*> loaded;  // by the constant part of the index
  Fragment combined{fragment.layout, {}};
  for (int j = 0; j < fragment.layout.Registers(); ++j) {
    const int constant = by_row ? fragment.layout.RowOf(j) : fragment.layout.ColumnOf(j);
    if (loaded.find(constant) == loaded.end()) {
      Value* at = by_row ? index.Row(j) : index.Column(j);
      Value* address = b.CreateAdd(cx.Param(attrs.base), b.CreateMul(b.CreateZExt(b.CreateAdd(at, part), e.I64()),
                                                                     e.C64(DataTypeBytes(attrs.type))));
      loaded[constant] = LoadRun(e, attrs.type, address, 1, b.CreateICmpULT(at, limit))[0];
    }
    combined.values.push_back(CombineWith(e, attrs.how, fragment.values[j], loaded[constant]));
  }
  return combined;
}

void EmitGlobalStore(const RoleContext& cx, const Fragment& fragment, const ir::GlobalAttrs& attrs, Value* row,
                     Value* column, Value* batch) {
  Emitter& e = cx.e;
  const GlobalFragment d(cx, fragment.layout, attrs, row, column, batch);
  for (int j = 0; j < fragment.layout.Registers(); j += attrs.vector) {
    if (attrs.vector == 1 && attrs.type != DataType::kF32) {
      e.StoreGlobal16(d.Address(j), e.Narrow(attrs.type, fragment.values[j]), d.Inside(j));
    } else {
      e.StoreGlobal(d.Address(j), Words(e, attrs.type, fragment.values, j, attrs.vector), d.Inside(j));
    }
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
  for (int i = 0; i < layout.outer; i += kWarpThreads / row_chunks) {
    Value* own = b.CreateAdd(first, e.C32(i));
    Value* offset = e.TileOffset(layout, own, b.CreateShl(chunk, 4));
    const std::vector<Value*> words = e.LoadShared(e.Offset(copy_base, offset));
    const RowPlace place = PlaceRow(cx, ir::Operand::kD, rows, b.CreateAdd(row, own), batch);
    Value* element = b.CreateAdd(place.offset, b.CreateZExt(at, e.I64()));
    Value* address = b.CreateAdd(cx.Param(Binding::kBaseD), b.CreateMul(element, e.C64(bytes)));
    e.StoreGlobal(address, words, b.CreateAnd(Kept(cx, own, place.inside), column_inside));
  }
  e.WarpSync();  // the copy may be written again
}

void EmitStageStore(const RoleContext& cx, const Fragment& fragment, const ir::Buffer& buffer, Value* copy_base) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::SharedLayout& layout = buffer.layout;
  LS_CHECK(layout.Columns() == 1, "a staging buffer is one swizzle span wide");
  const ElementIndex index(cx, fragment.layout, e.C32(0), e.C32(0));
  const int bytes = layout.ElementBytes();
  // Registers that one store takes: 16 bytes of a row, or the pair that a lane holds.
  const int run = std::min(fragment.layout.Run(), 16 / bytes);
  for (int j = 0; j < fragment.layout.Registers(); j += run) {
    Value* row = b.CreateAdd(index.lane_row, e.C32(fragment.layout.RowOf(j)));
    Value* byte = b.CreateAdd(b.CreateMul(index.lane_column, e.C32(bytes)), e.C32(fragment.layout.ColumnOf(j) * bytes));
    e.StoreShared(e.Offset(copy_base, e.TileOffset(layout, row, byte)), Words(e, layout.type, fragment.values, j, run));
  }
  e.FenceProxyAsyncShared();
  e.WarpSync();
}

}  // namespace laneshift::compiler
