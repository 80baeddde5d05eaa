#include "ir/layout.h"

#include "base/check.h"

namespace laneshift::ir {

char AxisLetter(Axis axis) {
  constexpr char kLetters[] = {'m', 'n', 'k'};
  return kLetters[static_cast<int>(axis)];
}

Swizzle WidestSwizzle(int row_bytes) {
  LS_CHECK(row_bytes > 0 && row_bytes % 16 == 0, "a row is a multiple of 16 bytes, not ", row_bytes);
  Swizzle widest = Swizzle::kNone;
  for (const Swizzle swizzle : {Swizzle::k32, Swizzle::k64, Swizzle::k128}) {
    if (row_bytes % SpanBytes(swizzle) == 0) widest = swizzle;
  }
  return widest;
}

int SharedLayout::Offset(int outer_index, int inner_index) const {
  const int byte = InnerBytes(inner_index);
  return byte / Span() * ColumnBytes() + outer_index * Span() + byte % Span();
}

int SharedLayout::Extent(Axis axis) const {
  LS_CHECK(axis == outer_axis || axis == inner_axis, "no axis ", AxisLetter(axis), " in this tile");
  return axis == outer_axis ? outer : inner;
}

int SharedLayout::OffsetAlong(Axis axis, int index) const {
  LS_CHECK(index <= Extent(axis), "index ", index, " is past the extent ", Extent(axis));
  return axis == outer_axis ? Offset(index, 0) : Offset(0, index);
}

MatrixStrides DescriptorStrides(const SharedLayout& layout) {
  // K-major: groups of eight M/N rows are eight spans apart. MN-major: groups of eight K rows are eight spans apart,
  // and the next span of M/N is one column of the tile further.
  return {.leading = layout.KMajor() ? 16 : layout.ColumnBytes(), .stride = 8 * layout.Span()};
}

FragmentLayout FragmentLayout::GatedColumns() const {
  LS_CHECK(HoldsAccumulator(kind), "pairs of columns are combined once");
  return {.kind = kind == FragmentKind::kMma16x8 ? FragmentKind::kMma16x8Gated : kind, .columns = columns / 2};
}

FragmentLayout FragmentLayout::GatedRows() const {
  LS_CHECK(HoldsAccumulator(kind), "pairs of rows are combined once");
  return {.kind = kind == FragmentKind::kMma16x8 ? FragmentKind::kMma8x8 : FragmentKind::kRowPerTwoLanes,
          .columns = columns};
}

FragmentKind AccumulatorFragment(int rows_of_four_warps) {
  LS_CHECK(rows_of_four_warps == 64 || rows_of_four_warps == 128, "four warps share 64 or 128 rows, not ",
           rows_of_four_warps);
  return rows_of_four_warps == 128 ? FragmentKind::kRowPerLane : FragmentKind::kMma16x8;
}

}  // namespace laneshift::ir
