#include "compiler/emit/emit_place.h"

#include <bit>
#include <optional>
#include <utility>

namespace laneshift::compiler {

using ir::Binding;

namespace {

// The sum of the weights of the bits that are set in the lane's number: adjacent bits with doubling weights move at
// once.
Value* PartOfLane(Emitter& e, Value* lane, const ir::FragmentFacts::LaneParts& parts) {
  auto& b = e.ir();
  Value* sum = nullptr;
  for (size_t bit = 0, end = 0; bit < parts.size(); bit = end) {
    end = bit + 1;
    if (parts[bit] == 0) continue;
    while (end < parts.size() && parts[end] == 2 * parts[end - 1]) ++end;
    const auto place = static_cast<size_t>(std::countr_zero(static_cast<unsigned>(parts[bit])));
    Value* part = lane;
    // A shift to the lowest place drops the bits below.
    if (end < parts.size() || (bit > 0 && place > 0))
      part = b.CreateAnd(part, e.C32(((1 << end) - 1) & ~((1 << bit) - 1)));
    if (bit > place) part = b.CreateLShr(part, bit - place);
    if (bit < place) part = b.CreateShl(part, place - bit);
    sum = sum == nullptr ? part : b.CreateOr(sum, part);
  }
  return sum == nullptr ? e.C32(0) : sum;
}

// A position of the implicit-GEMM index: its column; with boxes its line, and the number of its plane, or image;
// otherwise the number of its line among those of all planes.
struct Position {
  Value *q, *p, *rest;
};
Position PositionOf(const RoleContext& cx, Value* row) {
  auto& b = cx.e.ir();
  const ir::Program& program = cx.program;
  if (program.box_lines == 0) {
    Value* q = b.CreateURem(row, cx.Param(Binding::kPaddedQ));
    return {q, nullptr, b.CreateUDiv(row, cx.Param(Binding::kPaddedQ))};
  }
  Value* columns = cx.e.C32(static_cast<uint32_t>(program.box_columns));
  Value* lines = cx.e.C32(static_cast<uint32_t>(program.box_lines));
  const auto boxes = [&](Binding outputs, Value* of_box) {
    return b.CreateUDiv(b.CreateAdd(cx.Param(outputs), b.CreateSub(of_box, cx.e.C32(1))), of_box);
  };
  Value* across = boxes(Binding::kOutQ, columns);
  Value* down = boxes(Binding::kOutP, lines);
  Value* line = b.CreateUDiv(row, columns);
  Value* box = b.CreateUDiv(line, lines);
  Value* rest = b.CreateUDiv(box, across);
  const auto place = [&](Value* number, Value* of_box, Value* within) {
    return b.CreateAdd(b.CreateMul(number, of_box), b.CreateURem(within, of_box));
  };
  return {place(b.CreateURem(box, across), columns, row), place(b.CreateURem(rest, down), lines, line),
          b.CreateUDiv(rest, down)};
}

// Whether it is an output, not one of those that fill up a line or a box. `inside`: of the index.
Value* IsOutput(const RoleContext& cx, Value* inside, const Position& at) {
  auto& b = cx.e.ir();
  inside = b.CreateAnd(inside, b.CreateICmpULT(at.q, cx.Param(Binding::kOutQ)));
  return at.p == nullptr ? inside : b.CreateAnd(inside, b.CreateICmpULT(at.p, cx.Param(Binding::kOutP)));
}

}  // namespace

ElementIndex::ElementIndex(const RoleContext& cx, const ir::FragmentLayout& layout, Value* row, Value* column)
    : e_(cx.e), fragment_(layout), transposed_(cx.program.row_axis == ir::Axis::kN) {
  auto& b = e_.ir();
  lane_row = PartOfLane(e_, cx.lane, fragment_.Facts().lane_rows);
  lane_column = PartOfLane(e_, cx.lane, fragment_.Facts().lane_columns);
  if (transposed_) std::swap(lane_row, lane_column);
  first_row = b.CreateAdd(row, lane_row);
  first_column = b.CreateAdd(column, lane_column);
}

Value* EndOfRows(const RoleContext& cx) { return cx.end_row != nullptr ? cx.end_row : cx.Param(Binding::kM); }

namespace {

StoredRow FindRow(const RoleContext& cx, ir::Operand operand, Value* row, Value* outside) {
  auto& b = cx.e.ir();
  Value* inside = b.CreateICmpULT(row, EndOfRows(cx));
  const Binding indices = ir::OfOperand(ir::BindingFamily::kRowIndices, operand);
  if (cx.program.FindParam(indices) == nullptr) return {inside, row};
  Value* address = b.CreateAdd(cx.Param(indices), b.CreateShl(b.CreateZExt(row, cx.e.I64()), 2));
  Value* stored = cx.e.LoadGlobal(address, 1, inside)[0];
  if (outside != nullptr) stored = b.CreateSelect(inside, stored, outside);
  Value* exists = b.CreateICmpULT(stored, cx.Param(ir::OfOperand(ir::BindingFamily::kStoredRows, operand)));
  return {b.CreateAnd(inside, exists), stored};
}

}  // namespace

StoredRow FindRowOfA(const RoleContext& cx, Value* row, Value* outside) {
  return FindRow(cx, ir::Operand::kA, row, outside);
}
StoredRow FindRowOfD(const RoleContext& cx, Value* row) { return FindRow(cx, ir::Operand::kD, row, nullptr); }

RowPlace PlaceRow(const RoleContext& cx, ir::Operand operand, ir::RowMap rows, Value* row, Value* batch) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const auto scaled = [&](Value* index, Binding distance) {
    return b.CreateMul(b.CreateZExt(index, e.I64()), cx.Param(distance));
  };
  if (rows == ir::RowMap::kGroups) {
    const StoredRow stored = FindRowOfD(cx, row);
    return {stored.inside, scaled(stored.row, ir::PitchOf(operand))};
  }
  Value* inside = b.CreateICmpULT(row, EndOfRows(cx));
  if (rows == ir::RowMap::kMatrix) {
    return {inside, b.CreateAdd(scaled(batch, ir::StrideOf(operand)), scaled(row, ir::PitchOf(operand)))};
  }
  if (rows == ir::RowMap::kFilters) {
    Value* taps = b.CreateMul(cx.Param(Binding::kTapsS), cx.Param(Binding::kTapsR));
    if (cx.program.FindParam(Binding::kTapsT) != nullptr) taps = b.CreateMul(taps, cx.Param(Binding::kTapsT));
    Value* filter = b.CreateAdd(b.CreateMul(b.CreateUDiv(batch, taps), cx.Param(Binding::kM)), row);
    Value* tap = scaled(b.CreateURem(batch, taps), ir::StrideOf(operand));
    return {inside, b.CreateAdd(tap, scaled(filter, ir::PitchOf(operand)))};
  }
  // A position of the implicit-GEMM index; the batch is the group of channels.
  const ir::PixelPitches pitches = ir::PixelPitchesOf(operand);
  RowPlace place{};
  // The first pixel of a position's patch.
  const auto pixel = [&](Value* position, size_t d, int patch) {
    if (cx.program.Patch() == 1) return position;
    Value* first = b.CreateMul(position, e.C32(static_cast<uint32_t>(patch)));
    place.left[d] = b.CreateSub(cx.Param(ir::kSpatialBindings[d].pixels), first);
    return first;
  };
  const Position at = PositionOf(cx, row);
  const bool boxes = at.p != nullptr;
  Value* rest = at.rest;
  Value* offset = scaled(pixel(at.q, 0, cx.program.patch_w), ir::PitchOf(operand));
  Value* p = pixel(boxes ? at.p : b.CreateURem(rest, cx.Param(Binding::kOutP)), 1, cx.program.patch_h);
  offset = b.CreateAdd(offset, scaled(p, pitches.row));
  if (!boxes) rest = b.CreateUDiv(rest, cx.Param(Binding::kOutP));
  if (cx.program.FindParam(Binding::kOutO) != nullptr) {
    Value* o = pixel(b.CreateURem(rest, cx.Param(Binding::kOutO)), 2, cx.program.patch_d);
    offset = b.CreateAdd(offset, scaled(o, pitches.plane));
    rest = b.CreateUDiv(rest, cx.Param(Binding::kOutO));
  }
  offset = b.CreateAdd(offset, scaled(rest, ir::StrideOf(operand)));
  place.offset = b.CreateAdd(offset, b.CreateZExt(b.CreateMul(batch, ColumnsOf(cx, operand)), e.I64()));
  place.inside = IsOutput(cx, inside, at);
  return place;
}

ColumnPlace PlaceInWindow(const RoleContext& cx, Value* column) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const ir::Program& program = cx.program;
  const auto divide = [&](Value* number, int divisor) {
    Value* by = e.C32(static_cast<uint32_t>(divisor));
    return std::pair{b.CreateUDiv(number, by), b.CreateURem(number, by)};
  };
  constexpr int kWindowBits = 8 * 128;
  const int elements = kWindowBits / program.OperandBits();
  const auto [window, in_window] = divide(column, elements);
  const auto [run, line] = divide(window, program.window_lines);
  const auto [plane, span] = divide(run, program.window_spans);
  Value* in_run = b.CreateAdd(b.CreateMul(span, e.C32(static_cast<uint32_t>(elements))), in_window);
  const auto [tap, in_pixel] = divide(in_run, program.window_rows * program.window_channels);
  const auto [row_of_line, channel] = divide(in_pixel, program.window_channels);
  Value* row = b.CreateAdd(b.CreateMul(line, e.C32(static_cast<uint32_t>(program.window_rows))), row_of_line);
  Value *rows = cx.Param(Binding::kTapsR), *taps = cx.Param(Binding::kTapsS), *channels = cx.Param(Binding::kChannels);
  Value* inside = b.CreateAnd(b.CreateICmpULT(row, rows), b.CreateICmpULT(tap, taps));
  inside = b.CreateAnd(inside, b.CreateICmpULT(channel, channels));
  inside = b.CreateAnd(inside, b.CreateICmpULT(column, cx.Param(Binding::kN)));
  Value* place = b.CreateAdd(b.CreateMul(plane, rows), row);
  place = b.CreateAdd(b.CreateMul(place, taps), tap);
  return {inside, b.CreateAdd(b.CreateMul(place, channels), channel)};
}

PatchColumn ColumnOfPatch(const RoleContext& cx, Value* column) {
  auto& b = cx.e.ir();
  const auto constant = [&](int value) { return cx.e.C32(static_cast<uint32_t>(value)); };
  Value* channels = b.CreateUDiv(cx.Param(Binding::kN), constant(cx.program.Patch()));
  Value* pixel = b.CreateUDiv(column, channels);
  Value *width = constant(cx.program.patch_w), *height = constant(cx.program.patch_h);
  Value* row = b.CreateUDiv(pixel, width);
  return {b.CreateSub(column, b.CreateMul(pixel, channels)),
          {b.CreateURem(pixel, width), b.CreateURem(row, height), b.CreateUDiv(row, height)}};
}

RowPlace PlaceInLine(const RoleContext& cx, ir::Operand operand, const RowPlace& first, Value* row, int distance) {
  auto& b = cx.e.ir();
  Value* steps = cx.e.C32(static_cast<uint32_t>(distance));
  Position at = PositionOf(cx, row);
  at.q = b.CreateAdd(at.q, steps);
  Value* inside = IsOutput(cx, b.CreateICmpULT(row, EndOfRows(cx)), at);
  Value* further = b.CreateMul(b.CreateZExt(steps, cx.e.I64()), cx.Param(ir::PitchOf(operand)));
  return {inside, b.CreateAdd(first.offset, further)};
}

Value* InLiveRow(const RoleContext& cx, Value* row_of_warp, Value* inside) {
  if (cx.program.live_rows == 0) return inside;
  const int live_rows = cx.program.live_rows * kWarpThreads / cx.threads;
  return cx.e.ir().CreateAnd(inside, cx.e.ir().CreateICmpULT(row_of_warp, cx.e.C32(live_rows)));
}

Value* ColumnsOfD(const RoleContext& cx) {
  return cx.Param(cx.program.FindParam(Binding::kColumns) != nullptr ? Binding::kColumns : Binding::kN);
}

Value* ColumnsOf(const RoleContext& cx, ir::Operand operand) {
  return operand == ir::Operand::kD ? ColumnsOfD(cx) : cx.Param(Binding::kN);
}

GlobalFragment::GlobalFragment(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::GlobalAttrs& attrs,
                               Value* row, Value* column, Value* batch)
    : cx_(cx),
      index_(cx, layout, row, column),
      bytes_(static_cast<int>(DataTypeBytes(attrs.type))),
      columns_(ColumnsOf(cx, attrs.operand)) {
  auto& b = cx.e.ir();
  Value* block_rows = nullptr;
  if (const int blocks = cx.program.diagonal_blocks; blocks > 1) {
    block_rows = b.CreateUDiv(cx.Param(Binding::kM), cx.e.C32(blocks));
    columns_ = b.CreateUDiv(columns_, cx.e.C32(blocks));
  }
  std::optional<RowPlace> first;  // of the lane's rows, where these are in one line of pixels
  for (int j = 0; j < layout.Registers(); ++j) {
    if (rows_.find(index_.RowOf(j)) != rows_.end()) continue;
    RowPlace place = first ? PlaceInLine(cx, attrs.operand, *first, index_.first_row, index_.RowOf(j))
                           : PlaceRow(cx, attrs.operand, attrs.rows, index_.Row(j), batch);
    if (!first && layout.HasRunsOfRows() && attrs.rows == ir::RowMap::kPixels) first = place;
    place.inside = InLiveRow(cx, b.CreateAdd(index_.lane_row, cx.e.C32(index_.RowOf(j))), place.inside);
    Value* from = cx.program.HasWindows() ? cx.e.C64(0) : b.CreateZExt(index_.first_column, cx.e.I64());
    if (block_rows != nullptr) {
      Value* first_column = b.CreateMul(b.CreateUDiv(index_.Row(j), block_rows), columns_);
      first_columns_[index_.RowOf(j)] = first_column;
      from = b.CreateSub(from, b.CreateZExt(first_column, cx.e.I64()));
    }
    Value* offset = cx.program.Patch() > 1 ? place.offset : b.CreateAdd(place.offset, from);
    Value* base = b.CreateAdd(cx.Param(attrs.base), b.CreateMul(offset, cx.e.C64(bytes_)));
    rows_[index_.RowOf(j)] = {place.inside, base, place.left};
  }
  for (int j = 0; j < layout.Registers() && cx.program.Patch() > 1; j += attrs.vector) {
    if (runs_.find(index_.ColumnOf(j)) == runs_.end()) runs_[index_.ColumnOf(j)] = RunOfPatch(attrs, j);
  }
  if (!cx.program.HasWindows()) return;
  // Computed for this fragment only: those of a whole tile would be held in registers at a time.
  Value* own = cx.e.Anew(index_.first_column);
  for (int j = 0; j < layout.Registers(); ++j) {
    const int constant = index_.ColumnOf(j);
    if (windows_.find(constant) != windows_.end()) continue;
    windows_[constant] = PlaceInWindow(cx, b.CreateAdd(own, cx.e.C32(static_cast<uint32_t>(constant))));
  }
}

GlobalFragment::PatchRun GlobalFragment::RunOfPatch(const ir::GlobalAttrs& attrs, int j) const {
  auto& b = cx_.e.ir();
  const auto wide = [&](Value* number) { return b.CreateZExt(number, cx_.e.I64()); };
  const PatchColumn column = ColumnOfPatch(cx_, index_.Column(j));
  const ir::PixelPitches pitches = ir::PixelPitchesOf(attrs.operand);
  Value* offset =
      b.CreateAdd(wide(column.channel), b.CreateMul(wide(column.pixel[0]), cx_.Param(ir::PitchOf(attrs.operand))));
  offset = b.CreateAdd(offset, b.CreateMul(wide(column.pixel[1]), cx_.Param(pitches.row)));
  if (cx_.program.FindParam(Binding::kOutO) != nullptr)
    offset = b.CreateAdd(offset, b.CreateMul(wide(column.pixel[2]), cx_.Param(pitches.plane)));
  return {b.CreateMul(offset, cx_.e.C64(bytes_)), column.pixel};
}

Value* GlobalFragment::Address(int j) const {
  if (!windows_.empty()) {
    auto& b = cx_.e.ir();
    Value* column = b.CreateZExt(windows_.at(index_.ColumnOf(j)).column, cx_.e.I64());
    return b.CreateAdd(rows_.at(index_.RowOf(j)).offset, b.CreateMul(column, cx_.e.C64(bytes_)));
  }
  if (!runs_.empty())
    return cx_.e.ir().CreateAdd(rows_.at(index_.RowOf(j)).offset, runs_.at(index_.ColumnOf(j)).offset);
  return cx_.e.ir().CreateAdd(rows_.at(index_.RowOf(j)).offset, cx_.e.C64(index_.ColumnOf(j) * bytes_));
}

Value* GlobalFragment::Inside(int j) const {
  auto& b = cx_.e.ir();
  if (!windows_.empty()) return b.CreateAnd(rows_.at(index_.RowOf(j)).inside, windows_.at(index_.ColumnOf(j)).inside);
  Value* column = index_.Column(j);
  if (!first_columns_.empty()) column = b.CreateSub(column, first_columns_.at(index_.RowOf(j)));
  const RowPlace& row = rows_.at(index_.RowOf(j));
  Value* inside = b.CreateAnd(row.inside, b.CreateICmpULT(column, columns_));
  if (runs_.empty()) return inside;
  const PatchRun& run = runs_.at(index_.ColumnOf(j));
  for (size_t d = 0; d < row.left.size(); ++d) {
    if (row.left[d] != nullptr) inside = b.CreateAnd(inside, b.CreateICmpULT(run.pixel[d], row.left[d]));
  }
  return inside;
}

std::vector<Value*> Run(const Fragment& fragment, int first, int count) {
  return {fragment.values.begin() + first, fragment.values.begin() + first + count};
}

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

Value* LinePitch(Emitter& e, Value* length) {
  constexpr uint32_t kUnit = ir::PartialRows::kUnit;
  auto& b = e.ir();
  return b.CreateAnd(b.CreateAdd(length, e.C32(kUnit - 1)), e.C32(~(kUnit - 1)));
}

}  // namespace laneshift::compiler
