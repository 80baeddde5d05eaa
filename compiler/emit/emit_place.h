// Where the elements of a fragment are: in C, in D and tensors with its layout, and in vectors along rows or columns.
//
// Thread-safety: none; as the emitter that they write with.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {

// Row and column in D of the element that register `j` of this lane holds, relative to the fragment's first ones: a
// part that differs from lane to lane, and a constant for each register.
class ElementIndex {
 public:
  ElementIndex(const RoleContext& cx, const ir::FragmentLayout& layout, Value* row, Value* column);

  int RowOf(int j) const { return transposed_ ? fragment_.ColumnOf(j) : fragment_.RowOf(j); }
  int ColumnOf(int j) const { return transposed_ ? fragment_.RowOf(j) : fragment_.ColumnOf(j); }
  Value* Row(int j) const { return e_.ir().CreateAdd(first_row, e_.C32(static_cast<uint32_t>(RowOf(j)))); }
  Value* Column(int j) const { return e_.ir().CreateAdd(first_column, e_.C32(static_cast<uint32_t>(ColumnOf(j)))); }
  // Bits of a lane's number by which rows differ, and columns.
  int RowLanes() const { return transposed_ ? fragment_.ColumnLanes() : fragment_.RowLanes(); }
  int ColumnLanes() const { return transposed_ ? fragment_.RowLanes() : fragment_.ColumnLanes(); }

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

// The row of D before which those of a tile are inside: that of its group, where rows belong to groups.
Value* EndOfRows(const RoleContext& cx);

// The row of A, or of C and D, that a row of the product is; the same one where no index vector says otherwise.
// `inside`: it is one of a group, and the operand has that row. Where it is of no group, `row` is `outside`, if given.
struct StoredRow {
  Value *inside, *row;
};
StoredRow FindRowOfA(const RoleContext& cx, Value* row, Value* outside = nullptr);
StoredRow FindRowOfD(const RoleContext& cx, Value* row);

// A row of C or D: whether it is inside, and the element offset of its first column. Where a row is a patch of pixels,
// also how many there are from its first one on in each dimension, width first.
struct RowPlace {
  Value* inside;
  Value* offset;
  std::array<Value*, 3> left{};
};
RowPlace PlaceRow(const RoleContext& cx, ir::Operand operand, ir::RowMap rows, Value* row, Value* batch);

// A column that is an element of a window of pixels: whether there is one in D, and which.
struct ColumnPlace {
  Value *inside, *column;
};
// REQUIRES: the program has windows.
ColumnPlace PlaceInWindow(const RoleContext& cx, Value* column);
// What a column is where a row is a patch of pixels: a channel of one of them. The place of the pixel in the patch, width
// first.
struct PatchColumn {
  Value* channel;
  std::array<Value*, 3> pixel;
};
PatchColumn ColumnOfPatch(const RoleContext& cx, Value* column);

// The row `distance` after `row`, whose place is `first`, in the same line of pixels: lines of the index are multiples
// of a lane's run of rows.
RowPlace PlaceInLine(const RoleContext& cx, ir::Operand operand, const RowPlace& first, Value* row, int distance);

// Elements from one partial row to the next, for rows of this length: as ir::PartialRows::Pitch.
Value* LinePitch(Emitter& e, Value* length);

// Whether a row of the warp is valid, where the last ones are stale; else just `inside`.
Value* InLiveRow(const RoleContext& cx, Value* row_of_warp, Value* inside);

// Columns of D: N, or half of it with a gated linear unit. Of C always N.
Value* ColumnsOfD(const RoleContext& cx);
Value* ColumnsOf(const RoleContext& cx, ir::Operand operand);

// Addresses and bounds of a fragment's runs in global memory.
class GlobalFragment {
 public:
  GlobalFragment(const RoleContext& cx, const ir::FragmentLayout& layout, const ir::GlobalAttrs& attrs, Value* row,
                 Value* column, Value* batch);
  Value* Address(int j) const;
  Value* Inside(int j) const;

 private:
  // A run of columns of a patch: the bytes from the address of the row, and the place of its pixel.
  struct PatchRun {
    Value* offset;
    std::array<Value*, 3> pixel;
  };
  PatchRun RunOfPatch(const ir::GlobalAttrs& attrs, int j) const;

  const RoleContext& cx_;
  const ElementIndex index_;
  const int bytes_;
  Value* columns_;
  std::map<int, RowPlace> rows_;         // by the constant part of the row; `offset` is the address of its first column
  std::map<int, PatchRun> runs_;         // by the constant part of the column, where rows are patches
  std::map<int, Value*> first_columns_;  // of the block that a row has, where D is the blocks on a diagonal
  std::map<int, ColumnPlace> windows_;   // by the constant part of the column, where columns are elements of windows
};

std::vector<Value*> Run(const Fragment& fragment, int first, int count);
// `count` adjacent elements as f32, the first one at `address`.
std::vector<Value*> LoadRun(Emitter& e, DataType type, Value* address, int count, Value* inside);
void StoreRun(Emitter& e, DataType type, Value* address, const std::vector<Value*>& values, Value* inside);

}  // namespace laneshift::compiler
