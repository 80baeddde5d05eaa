// WorkLoop: the op `work` as code: one loop over the units of a cluster's work, wherever they come from.
//
// Tiles go in bands of `raster` tile rows, column after column within a band: the CTAs that run at one time share the
// operands of few rows and few columns, which then come from L2. A cluster goes through them as one CTA whose tile is
// the cluster's. compiler/plan/work_plan.h counts the same on the host. Thread-safety: none.
#pragma once

#include <functional>
#include <optional>

#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {

class WorkLoop {
 public:
  // The amount of work: counts of tiles along m and n, and of matrices; where tiles are cut, blocks of K of one. Where
  // rows belong to groups, also whether blocks of scale factors are counted.
  struct Counts {
    Value *rows, *columns, *batches;
    Value* blocks = nullptr;
    Value* block = nullptr;  // where batches have parts of K: elements in a block
    bool scale_blocks = false;
  };
  // One unit: a tile by its number in the order of the loop, or a slice of one.
  struct Unit {
    Value* tile;
    // Where tiles are cut: the blocks of K, from k_begin to below k_end; the tile's number among those that are cut;
    // the slice, and the slices of this tile.
    Value *k_begin = nullptr, *k_end = nullptr;
    Value* number = nullptr;
    Value *slice = nullptr, *slices = nullptr;
    // Where rows belong to groups: the group and its number of tile rows of clusters, its rows, its first tile, and its
    // first block of scale factors. Where batches have parts of K, groups are these, and rows those of K; and the
    // blocks of the part, and of those of other roles of a ping-pong since the role's unit before.
    Value *group = nullptr, *tile_rows = nullptr;
    Value *first_row = nullptr, *end_row = nullptr, *first_tile = nullptr, *first_block = nullptr;
    Value *k_blocks = nullptr, *k_passed = nullptr;
  };
  // The position of a tile of this CTA, counted in tiles; of groups, also its first row in the group, and the rows that
  // the group has from there on, or the tile, where they are divided.
  struct Place {
    Value *row, *column, *batch;
    Value *first_row = nullptr, *rows = nullptr;
  };

  WorkLoop(const RoleContext& cx, const ir::WorkAttrs& attrs, const Counts& counts);

  // Of an index or a number of CTAs, that of their clusters.
  static Value* OfCluster(const RoleContext& cx, Value* ctas);

  void ForEach(const std::function<void(const Unit&)>& body);
  // This CTA's part of the cluster's tile.
  Place At(const Unit& unit) const;
  bool DividesRows() const { return attrs_.row_step > 0; }
  // Within the body, where units come from cluster launch control: the next one is that of the stolen cluster,
  // if there is one.
  void Steal(const Emitter::ClcResponse& response);

 private:
  struct Quotient {
    Value *quotient, *rest;
  };
  // Where units come from: which one an iteration has, and how many iterations there are, or whether another follows.
  struct Source {
    Value* count = nullptr;  // null: not known in advance
    Value* any = nullptr;    // without a count: whether there is a first one; null: there is
    std::function<Unit(Value* iteration)> unit;
    std::function<void(const Unit&)> advance = [](const Unit&) {};
    std::function<Value*()> more{};  // where there is no count
  };
  Source SourceOfUnits();
  Source WholeTiles();
  Source Slices();
  void TakePart(Unit& unit) const;
  Source StolenTiles();
  Source TilesOfGroups();
  // The group that has a tile.
  struct GroupCursor {
    Variable tile, group, first_row, end_row, first_tile, end_tile;
    std::optional<Variable> first_block{}, end_block{};
    std::optional<Variable> passed{};  // blocks of tiles of other roles of a ping-pong
  };
  Value* LoadOfGroup(ir::Binding base, Value* index) const;
  void LoadOffset(Value* index, const Variable& offset) const;
  void FindRows(Value* group, const GroupCursor& at) const;
  Value* TileRowsOf(Value* rows) const;
  void PlaceInGroup(const Unit& unit, Place& place) const;
  Value* BlocksOfPart(const GroupCursor& at) const;
  void PassTiles(const GroupCursor& at, int tiles) const;
  void FindGroup(const GroupCursor& at) const;
  Quotient Divide(Value* number, Value* divisor, Value* easy, Value* quotient) const;

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::WorkAttrs& attrs_;
  Value* const rows_of_tile_;
  Value *rows_, *columns_, *total_;  // of groups, rows_ are those of D that a cluster's tile has
  Value* const batches_;
  Value* const blocks_;
  Value* const block_;
  const bool scale_blocks_;
  Value *own_, *clusters_;              // this cluster among all
  Variable stolen_tile_{}, another_{};  // of cluster launch control
};

}  // namespace laneshift::compiler
