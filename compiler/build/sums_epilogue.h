// Tiles of D whose sums threads add up and leave in shared memory. One role multiplies (SumTiles); the other one
// (SumsEpilogue) adds the copies of a sum, and partial sums of other CTAs, in a fixed order, and stores them as any
// epilogue does.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include <functional>

#include "compiler/build/k_loop.h"
#include "compiler/build/subtile_steps.h"
#include "compiler/build/tile_loop.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// The tiles, whose K may be divided among CTAs. REQUIRES: `k` outlives the loop.
TileLoop TilesOfSums(const ir::Program& program, const Schedule& schedule, const KLoop& k);

// The body of the role that multiplies: of each tile the elements [first, end) of K, whose sums go to a slot of the
// channel.
void SumTiles(
    ir::Builder& b, const TileLoop& tiles, int channel,
    const std::function<void(const Corner& corner, ir::ValueId slot, ir::ValueId first, ir::ValueId end)>& multiply);

struct SumsEpilogue {
  const CtaPlan& plan;
  const EpilogueTerms& terms;
  const SubtileSteps& steps;
  int channel = 0;  // of the sums
  int copies = 1;   // of each of them
  bool slices_apart = false;  // another kernel adds the sums of slices (Contraction::AddsSlicesApart)

  // The body of the role.
  void StoreTiles(ir::Builder& b, const TileLoop& tiles) const;

 private:
  void StoreTile(ir::Builder& b, const Corner& corner, ir::ValueId sums, const TensorScales& scales) const;
};

}  // namespace laneshift::compiler
