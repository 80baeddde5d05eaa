// Layouts of tiles in shared memory, of accumulators and of register fragments: the only place where an address or a
// register number is computed from tile coordinates. Emission and the timing model read it; nothing recomputes it.
//
// Thread-safety: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "laneshift/problem.h"

namespace laneshift::ir {

// The index that an extent of a tile runs over.
enum class Axis : uint8_t { kM, kN, kK };
char AxisLetter(Axis axis);

// The TMA and MMA swizzle: 16-byte chunks of a span are permuted by XOR with the address bits above 128 bytes. A span
// of one chunk has nothing to permute; only staging buffers of D have such rows.
enum class Swizzle : uint8_t { kNone, k32, k64, k128 };
constexpr int SpanBytes(Swizzle swizzle) { return 16 << static_cast<int>(swizzle); }
// The widest swizzle whose span divides a row of `row_bytes`. REQUIRES: row_bytes is a positive multiple of 16.
Swizzle WidestSwizzle(int row_bytes);

// A tile in shared memory: `outer` rows of `inner` contiguous elements. A row longer than one swizzle span is cut into
// columns of one span; each column is `outer` consecutive spans, and the columns are consecutive. One TMA box per
// column writes this layout, and the K-major and MN-major matrix descriptors read it (PTX ISA, "Canonical layouts"). A
// row shorter than a span, of whole 16 bytes, leaves the end of its span unused: the TMA neither reads nor writes it,
// and rows are still a span apart (measured on an H200).
//
// Columns may overlap: each begins `step` rows after the one before, and one box writes the rows of all of them.
struct SharedLayout {
  static constexpr int kCopyAlignment = 128;  // bytes, of a bulk tensor copy in shared memory

  DataType type = DataType::kBf16;
  Axis outer_axis = Axis::kM, inner_axis = Axis::kK;
  int outer = 0, inner = 0;
  Swizzle swizzle = Swizzle::k128;
  bool padded = false;  // elements of fewer than eight bits: 16 of them, packed in the low bytes, take 16 bytes
  bool linear = false;  // the chunks of a span are in order: threads read the tile, and whole spans at a time
  int step = 0;         // rows from one column to the next where they overlap; 0: they do not

  // In shared memory.
  int ElementBits() const { return padded ? 8 : static_cast<int>(DataTypeBits(type)); }
  // REQUIRES: elements are whole bytes.
  int ElementBytes() const { return static_cast<int>(DataTypeBytes(type)); }
  int RowBytes() const { return InnerBytes(inner); }
  int Span() const { return SpanBytes(swizzle); }
  int Bytes() const { return AllRows() * Span(); }
  // A start at a multiple of this repeats the swizzle pattern from its beginning, and bulk tensor copies may go there.
  int Alignment() const { return linear ? kCopyAlignment : 8 * Span(); }
  // Columns of one span, and the elements of one.
  int Columns() const { return (RowBytes() + Span() - 1) / Span(); }
  int ColumnElements() const { return RowBytes() < Span() ? inner : 8 * Span() / ElementBits(); }
  int ColumnBytes() const { return (step == 0 ? outer : step) * Span(); }
  // Of one span, in all columns.
  int AllRows() const { return outer + (Columns() - 1) * (step == 0 ? outer : step); }
  // Bulk copies that fill the tile.
  int Boxes() const { return step == 0 ? Columns() : 1; }
  // What bulk copies of `rows` rows transfer, and count at a barrier: padding is not part of it
  // (docs/emulator.md, policy packed_bytes).
  int CopiedBytes(int rows) const { return rows * inner * static_cast<int>(DataTypeBits(type)) / 8; }
  int CopiedBytes() const { return step == 0 ? CopiedBytes(outer) : Bytes(); }
  bool KMajor() const { return inner_axis == Axis::kK; }
  // Byte offset of element (outer, inner) before the XOR. The XOR of an address a inside the tile is ((a >> 7) & mask)
  // << 4.
  int Offset(int outer_index, int inner_index) const;
  int SwizzleMask() const { return linear ? 0 : Span() / 16 - 1; }
  // Extent along an axis. REQUIRES: the tile has that axis.
  int Extent(Axis axis) const;
  // Byte offset of the element with index `index` along `axis` and 0 along the other one.
  int OffsetAlong(Axis axis, int index) const;

  bool operator==(const SharedLayout&) const = default;

 private:
  int InnerBytes(int elements) const { return elements * ElementBits() / 8; }
};

// Bytes that bulk copies of `box`, one for each column of `tile` or one for all, bring.
inline int BoxBytes(const SharedLayout& tile, const SharedLayout& box) {
  return tile.step == 0 ? tile.CopiedBytes(box.outer) : tile.CopiedBytes();
}

// Fields of the shared-memory matrix descriptor of wgmma and tcgen05.mma for a SharedLayout, in bytes.
struct MatrixStrides {
  int leading;  // LBO: MN-major: from one span of M/N to the next; K-major with a swizzle: ignored
  int stride;   // SBO: from one group of eight spans to the next
};
MatrixStrides DescriptorStrides(const SharedLayout& layout);

// How the registers of one warp hold part of an accumulator tile.
enum class FragmentKind : uint8_t {
  kRowPerLane,  // 32 rows; lane l holds row l, register j column j (tcgen05.ld 32x32b)
  kMma16x8,  // 16 rows; lane l holds rows l/4 and l/4+8, columns 2*(l%4)+{0,1} of each 8 (wgmma D, tcgen05.ld 16x256b)
  // The layouts after a gated linear unit: pairs of adjacent columns, or of rows, have become one. A lane holds results
  // of the rows and columns that it held before.
  kMma16x8Gated,    // kMma16x8, but the columns of lanes 1 and 2 of each four are exchanged
  kRowPerTwoLanes,  // 16 rows; lane l holds row l/2, register j column 2*j + l%2
  kMma8x8,          // 8 rows; lane l holds row l/8 + 4*(l/4%2), columns 2*(l%4)+{0,1} of each 8
  // Sums of CUDA cores: each eight lanes hold adjacent runs of 8 columns, 64 in all.
  kRuns4,  // 16 rows; lane l holds rows 4*(l/8)+{0,…,3}, columns 8*(l%8)+{0,…,7} of each 64
  kRuns8,  // 32 rows; lane l holds rows 8*(l/8)+{0,…,7}, the same columns
};

// What each bit of a lane's index adds to its row and its column, and how its registers continue from there: `run`
// adjacent columns, the same in each of the lane's `rows_of_lane` rows, which are `row_step` apart, then on by `step`
// columns.
struct FragmentFacts {
  static constexpr size_t kLaneBits = 5;
  using LaneParts = std::array<int, kLaneBits>;

  int rows;
  LaneParts lane_rows, lane_columns;
  int run, rows_of_lane, step;
  int row_step = 8;
};
// In the order of FragmentKind.
inline constexpr FragmentFacts kFragmentFacts[] = {
    {32, {1, 2, 4, 8, 16}, {0, 0, 0, 0, 0}, 1, 1, 1},       {16, {0, 0, 1, 2, 4}, {2, 4, 0, 0, 0}, 2, 2, 8},
    {16, {0, 0, 1, 2, 4}, {4, 2, 0, 0, 0}, 2, 2, 8},        {16, {0, 1, 2, 4, 8}, {1, 0, 0, 0, 0}, 1, 1, 2},
    {8, {0, 0, 4, 1, 2}, {2, 4, 0, 0, 0}, 2, 1, 8},         {16, {0, 0, 0, 4, 8}, {8, 16, 32, 0, 0}, 8, 4, 64, 1},
    {32, {0, 0, 0, 8, 16}, {8, 16, 32, 0, 0}, 8, 8, 64, 1},
};

// Whether accumulators are read in this layout.
constexpr bool HoldsAccumulator(FragmentKind kind) { return kind <= FragmentKind::kMma16x8; }

struct FragmentLayout {
  FragmentKind kind = FragmentKind::kRowPerLane;
  int columns = 0;

  const FragmentFacts& Facts() const { return kFragmentFacts[static_cast<size_t>(kind)]; }
  int Rows() const { return Facts().rows; }
  int Registers() const { return Rows() * columns / 32; }
  // Element held by register `j` of lane `l`: row = lane part + RowOf(j), column = lane part + ColumnOf(j).
  int RowOf(int j) const { return Facts().row_step * (j / Facts().run % Facts().rows_of_lane); }
  int ColumnOf(int j) const { return j / (Facts().run * Facts().rows_of_lane) * Facts().step + j % Facts().run; }
  // Of the columns that a lane holds in order, the number of one that it holds.
  int NumberOfColumn(int column) const { return column / Facts().step * Facts().run + column % Facts().run; }
  int LaneRow(int lane) const { return SumOfBits(Facts().lane_rows, lane); }
  int LaneColumn(int lane) const { return SumOfBits(Facts().lane_columns, lane); }
  // The bits of a lane's index that select its rows, and those that select its columns.
  int RowLanes() const { return BitsOf(Facts().lane_rows); }
  int ColumnLanes() const { return BitsOf(Facts().lane_columns); }
  // Registers j, j+1, … that hold adjacent columns of one row, starting at a multiple of this.
  int Run() const { return Facts().step == Facts().run ? columns : Facts().run; }
  // Whether the rows of a lane are adjacent.
  bool HasRunsOfRows() const { return Facts().rows_of_lane > 1 && Facts().row_step == 1; }
  // The layout after pairs of adjacent columns, or of adjacent rows, have become one. REQUIRES: HoldsAccumulator(kind).
  FragmentLayout GatedColumns() const;
  FragmentLayout GatedRows() const;

  bool operator==(const FragmentLayout&) const = default;

 private:
  static int SumOfBits(const FragmentFacts::LaneParts& parts, int lane) {
    int sum = 0;
    for (size_t bit = 0; bit < parts.size(); ++bit) sum += (lane >> bit & 1) * parts[bit];
    return sum;
  }
  static int BitsOf(const FragmentFacts::LaneParts& parts) {
    int bits = 0;
    for (size_t bit = 0; bit < parts.size(); ++bit) bits |= parts[bit] != 0 ? 1 << bit : 0;
    return bits;
  }
};

// The workspace of split-K: device memory in which CTAs that share tiles add up their partials in f32. First one
// counter for each shared tile and each warp that holds a part of it: 0 before a launch and after it. Then the
// partials, one for each slice of each shared tile. The lane that holds an element also reads it back, so a partial has
// the order of registers: for each warp quads of registers, for each quad the 32 lanes.
struct WorkspaceLayout {
  int rows = 0, columns = 0;  // of an accumulator
  int warps = 0;              // that hold it

  static constexpr int kMostTiles = 512;    // that are shared
  static constexpr int kCounterLine = 128;  // bytes of the counters of one tile
  // Fixed, so that kernels with different tiles may use one workspace in succession.
  static constexpr int64_t kCounterBytes = int64_t{kMostTiles} * kCounterLine;
  static constexpr int kQuadBytes = 32 * 16;

  int PartialBytes() const { return rows * columns * 4; }
  int WarpBytes() const { return PartialBytes() / warps; }
  int64_t Bytes(int64_t partials) const { return kCounterBytes + partials * PartialBytes(); }
  // Bytes of a column in a warp's part. Fragments begin at multiples of eight columns, which are whole quads.
  int ColumnBytes() const { return WarpBytes() / columns; }
};

// Partial rows: reductions of the epilogue in a fixed order. Each fragment stores its result to a separate partial row,
// one f32 for each row or column of D; the partial rows of a reduction are contiguous.
struct PartialRows {
  static constexpr int kUnit = 8;  // the length of a partial row is a multiple of this: whole sectors of memory

  // Of a matrix: `rows_per_unit` for each `unit` of the extent, the last one possibly partial.
  static constexpr int64_t Count(int64_t extent, int unit, int rows_per_unit) {
    return (extent + unit - 1) / unit * rows_per_unit;
  }
  static constexpr int64_t Pitch(int64_t length) { return (length + kUnit - 1) / kUnit * kUnit; }
  static constexpr int64_t Bytes(int64_t length, int64_t lines) { return Pitch(length) * lines * 4; }
};

// The fragment in which a warp of the epilogue reads an accumulator of `tile_m` rows: of 128 rows each of four warps
// reads 32, one a lane; of 64 rows each reads 16 (tcgen05 layout F, and every wgmma accumulator).
FragmentKind AccumulatorFragment(int rows_of_four_warps);

}  // namespace laneshift::ir
