// TileLoop: how a role of a kernel goes through the output tiles that are its CTA's.
//
// Thread-safety: a value.
#pragma once

#include <functional>

#include "ir/builder.h"

namespace laneshift::compiler {

// Calls `write(index)` inside a loop from 0 up to below `count`.
void ForEach(ir::Builder& b, ir::ValueId first, ir::ValueId end, const std::function<void(ir::ValueId)>& write);
void ForEach(ir::Builder& b, ir::ValueId count, const std::function<void(ir::ValueId)>& write);

// Element coordinates of the corner of an output tile. In a group of rows, also the row counted from the group's first,
// and the blocks of scale factors before the group. Of a part of K, where it begins, its length and its blocks, of
// which the first is the one that may be incomplete. Where CTAs share tiles, also the K blocks of this CTA's part, from
// `first` to below `end`; where they do so through the workspace, the tile's number among those that are cut, the
// number of the part, and how many there are.
struct Corner {
  ir::ValueId row = ir::kNoValue, column = ir::kNoValue, batch = ir::kNoValue;
  ir::ValueId group_row = ir::kNoValue, first_block = ir::kNoValue;
  ir::ValueId rows = ir::kNoValue;  // of a group: TileLoop::RowsOfGroup
  ir::ValueId part = ir::kNoValue, part_length = ir::kNoValue, part_blocks = ir::kNoValue;
  ir::ValueId first = ir::kNoValue, end = ir::kNoValue;
  ir::ValueId number = ir::kNoValue, slice = ir::kNoValue, slices = ir::kNoValue;

  bool IsPart() const { return first != ir::kNoValue; }
  bool IsSlice() const { return slices != ir::kNoValue; }
  bool IsInGroup() const { return group_row != ir::kNoValue; }
  bool HasPartOfK() const { return part != ir::kNoValue; }
};

// One iteration of the loop: its first argument, and the extents of a tile, which are defined before it.
struct Tile {
  ir::ValueId first, rows, columns;
};

struct TileLoop {
  static constexpr int kEveryTile = -1;  // of roles that go through all tiles of the CTA

  int tile_m = 0, tile_n = 0;  // rows and columns of D that a tile gives
  int tile_k = 0;              // elements of K in a block
  int raster = 1;
  int slices = 1;          // of K, at most
  int cluster_k = 1;       // CTAs of a cluster that share a tile
  int pingpong_roles = 1;  // roles that alternate in a ping-pong
  int row_step = 0;        // ir::WorkAttrs
  int clc = -1;            // channel, where units come from launch control
  ir::WorkSource source = ir::WorkSource::kStatic;
  // Iterations of the loop over K of one tile.
  std::function<ir::ValueId(ir::Builder&)> blocks{};

  bool SplitsK() const { return slices > 1 || cluster_k > 1; }
  // Calls `write` inside a loop over the tiles that are the role's: every one, or the `pingpong_index`-th of each
  // `pingpong_roles`.
  void ForEachTile(ir::Builder& b, int pingpong_index, const std::function<void(const Tile&)>& write) const;
  void ForEachCorner(ir::Builder& b, const std::function<void(const Corner&)>& write) const;
  // That of the first tile of all.
  Corner FirstCorner(ir::Builder& b) const;
  // Of a tile of groups: how many rows the group has from the tile's first on, or the tile, where they are divided.
  static ir::ValueId RowsOfGroup(const Tile& tile) {
    return ir::Builder::Argument(tile.first, ir::kWorkTileArguments + 2);
  }
  // The share of the work that an iteration of that loop is, and where its tile lies too.
  Corner SliceOf(const Tile& tile) const;
  Corner CornerOf(ir::Builder& b, const Tile& tile) const;
  // Whether tiles have different numbers of blocks of K: what other roles of a ping-pong have is passed over before the
  // role's next tile, when it is known. Otherwise it is one tile at a time.
  bool TilesDiffer() const { return source == ir::WorkSource::kPartsOfK; }
  // Tiles of other roles of the ping-pong before this one, or the one that is next: their slots of a channel are not
  // this role's.
  void PassTile(ir::Builder& b, const Tile& tile, int channel, int slots_of_block) const;
};

}  // namespace laneshift::compiler
