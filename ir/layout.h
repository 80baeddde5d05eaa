// Layouts of tiles in shared memory, of accumulators and of register fragments: the only place where an address or a
// register number is computed from tile coordinates. Emission and the timing model read it; nothing recomputes it.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "laneshift/problem.h"

namespace laneshift::ir {

// The index that an extent of a tile runs over.
enum class Axis : uint8_t { kM, kN, kK };
char AxisLetter(Axis axis);

// The TMA and MMA swizzle: 16-byte chunks of a span are permuted by XOR with the address bits above 128 bytes.
enum class Swizzle : uint8_t { k32, k64, k128 };
constexpr int SpanBytes(Swizzle swizzle) { return 32 << static_cast<int>(swizzle); }
// The widest swizzle whose span divides a row of `row_bytes`. REQUIRES: row_bytes is a positive multiple of 32.
Swizzle WidestSwizzle(int row_bytes);

// A tile in shared memory: `outer` rows of `inner` contiguous elements. A row longer than one swizzle span is cut into
// columns of one span; each column is `outer` spans one after another, and the columns follow each other. This is what
// one TMA box per column writes and what the K-major and MN-major matrix descriptors read (PTX ISA, "Canonical
// layouts"). A row shorter than a span, of whole 16 bytes, leaves the end of its span unused: the TMA neither reads nor
// writes it, and rows are a span apart all the same (measured on an H200).
struct SharedLayout {
  DataType type = DataType::kBf16;
  Axis outer_axis = Axis::kM, inner_axis = Axis::kK;
  int outer = 0, inner = 0;
  Swizzle swizzle = Swizzle::k128;

  int ElementBytes() const { return static_cast<int>(DataTypeBytes(type)); }
  int Span() const { return SpanBytes(swizzle); }
  int Bytes() const { return Columns() * ColumnBytes(); }
  // A start at a multiple of this repeats the swizzle pattern from its beginning.
  int Alignment() const { return 8 * Span(); }
  // Columns of one span, and the elements of one.
  int Columns() const { return (inner * ElementBytes() + Span() - 1) / Span(); }
  int ColumnElements() const { return inner * ElementBytes() < Span() ? inner : Span() / ElementBytes(); }
  int ColumnBytes() const { return outer * Span(); }
  bool KMajor() const { return inner_axis == Axis::kK; }
  // Byte offset of element (outer, inner) before the XOR. The XOR of an address a inside the tile is ((a >> 7) & mask)
  // << 4.
  int Offset(int outer_index, int inner_index) const;
  int SwizzleMask() const { return Span() / 16 - 1; }
  // Extent along an axis. REQUIRES: the tile has that axis.
  int Extent(Axis axis) const;
  // Byte offset of the element that is `index` along `axis` and first along the other one.
  int OffsetAlong(Axis axis, int index) const;

  bool operator==(const SharedLayout&) const = default;
};

// Bytes that bulk copies of `box`, one for each column of `tile`, bring.
inline int BoxBytes(const SharedLayout& tile, const SharedLayout& box) {
  return box.outer * tile.inner * tile.ElementBytes();
}

// Fields of the shared-memory matrix descriptor of wgmma and tcgen05.mma for a SharedLayout, in bytes.
struct MatrixStrides {
  int leading;  // LBO: MN-major: from one span of M/N to the next; K-major with a swizzle: ignored
  int stride;   // SBO: from one group of eight spans to the next
};
MatrixStrides DescriptorStrides(const SharedLayout& layout);

// How the registers of one warp hold a piece of an accumulator tile.
enum class FragmentKind : uint8_t {
  kRowPerLane,  // 32 rows; lane l holds row l, register j column j (tcgen05.ld 32x32b)
  kMma16x8,  // 16 rows; lane l holds rows l/4 and l/4+8, columns 2*(l%4)+{0,1} of each 8 (wgmma D, tcgen05.ld 16x256b)
  kMma16x8Gated,  // the same, but the columns of lanes 1 and 2 of each four are exchanged: pairs of kMma16x8, joined
};
// In which pairs of neighbouring columns lie when each has become one.
constexpr FragmentKind Gated(FragmentKind kind) {
  return kind == FragmentKind::kMma16x8 ? FragmentKind::kMma16x8Gated : kind;
}

struct FragmentLayout {
  FragmentKind kind = FragmentKind::kRowPerLane;
  int columns = 0;

  int Rows() const { return kind == FragmentKind::kRowPerLane ? 32 : 16; }
  int Registers() const { return Rows() * columns / 32; }
  // Element held by register `j` of lane `l`: row = lane part + RowOf(j), column = lane part + ColumnOf(j).
  int RowOf(int j) const { return kind == FragmentKind::kRowPerLane ? 0 : 8 * ((j >> 1) & 1); }
  int ColumnOf(int j) const { return kind == FragmentKind::kRowPerLane ? j : 8 * (j >> 2) + (j & 1); }
  int LaneRow(int lane) const { return kind == FragmentKind::kRowPerLane ? lane : lane / 4; }
  int LaneColumn(int lane) const {
    const int place = kind == FragmentKind::kMma16x8Gated ? (lane % 2) * 2 + lane / 2 % 2 : lane % 4;
    return kind == FragmentKind::kRowPerLane ? 0 : 2 * place;
  }
  // Bits of a lane's number by which its rows differ from other lanes', and its columns.
  int RowLanes() const { return kind == FragmentKind::kRowPerLane ? 31 : 28; }
  int ColumnLanes() const { return kind == FragmentKind::kRowPerLane ? 0 : 3; }
  // Registers j, j+1, … that hold adjacent columns of one row, starting at a multiple of this.
  int Run() const { return kind == FragmentKind::kRowPerLane ? columns : 2; }

  bool operator==(const FragmentLayout&) const = default;
};

// Device memory in which CTAs that share tiles add up what they have, all in f32. In front one counter for each shared
// tile and each warp that holds a part of it: 0 before a launch and after it. Behind them the pieces, one for each
// section of each shared tile. A piece is read back by lanes in the place of those that wrote it, so it lies in the
// order of registers: for each warp quads of registers, of each the 32 lanes side by side.
struct WorkspaceLayout {
  int rows = 0, columns = 0;  // of an accumulator
  int warps = 0;              // that hold it

  static constexpr int kMostTiles = 512;    // that are shared
  static constexpr int kCounterLine = 128;  // bytes of the counters of one tile
  // Fixed, so that kernels with different tiles may use one workspace one after another.
  static constexpr int64_t kCounterBytes = int64_t{kMostTiles} * kCounterLine;
  static constexpr int kQuadBytes = 32 * 16;

  int PieceBytes() const { return rows * columns * 4; }
  int WarpBytes() const { return PieceBytes() / warps; }
  int64_t Bytes(int64_t pieces) const { return kCounterBytes + pieces * PieceBytes(); }
  // Of a column, in a warp's part. Fragments begin at multiples of eight columns, which are whole quads.
  int ColumnBytes() const { return WarpBytes() / columns; }
};

// The fragment in which a warp of the epilogue reads an accumulator of `tile_m` rows: four warps share 128 rows as 32
// lanes each; 64 rows lie as 16 rows a warp (tcgen05 layout F, and every wgmma accumulator).
FragmentKind AccumulatorFragment(int rows_of_four_warps);

}  // namespace laneshift::ir
