// TileWalk: how a CTA goes through the output tiles of a kernel, as code.
//
// Tiles go in bands of `raster` tile rows, column after column within a band: the CTAs that run at one time share the
// operands of few rows and few columns, which then come from L2. A cluster walks as one CTA whose tile is the
// cluster's. Thread-safety: none.
#pragma once

#include <functional>

#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {

class TileWalk {
 public:
  // A tile of this CTA, counted in tiles.
  struct Place {
    Value *row, *column, *batch;
  };
  // The part of a tile's K that is this CTA's.
  struct Share {
    Value *first, *end;         // K blocks
    Value* number;              // of the tile among those that are cut
    Value *section, *sections;  // of the tile
  };
  // The tile at hand of granted ones, and whether there is another.
  struct Turn {
    Variable tile, more;
  };

  // Counts of tiles along m and n, and of matrices.
  TileWalk(const RoleContext& cx, int raster, Value* rows, Value* columns, Value* batches);

  // Of an index or a number of CTAs, that of their clusters.
  static Value* OfCluster(const RoleContext& cx, Value* ctas);

  // This CTA's part of the `linear`-th turn.
  Place At(Value* linear) const;

  // Calls `body` for every tile that is this CTA's, or for the `turn`-th of each `turns` of them. At() finds where it
  // lies.
  void ForEach(int turn, int turns, const std::function<void(Value* linear)>& body) const;
  // The same where the grid has a cluster for each tile, and a cluster takes over the tiles of others: `begin` is given
  // the turn, which the body sets.
  void ForEachGranted(const std::function<void(const Turn&)>& begin,
                      const std::function<void(Value* linear)>& body) const;
  // The same where the tiles that fill no round of CTAs are cut along K into `most` sections of `blocks` blocks at
  // most.
  void ForEachShare(Value* blocks, int most, const std::function<void(Value* linear, const Share&)>& body) const;

 private:
  struct Quotient {
    Value *quotient, *rest;
  };
  Quotient Divide(Value* number, Value* divisor, Value* easy, Value* quotient) const;

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const int raster_;
  Value *rows_, *columns_, *total_;
  Value *own_, *count_;  // this cluster among all
};

}  // namespace laneshift::compiler
