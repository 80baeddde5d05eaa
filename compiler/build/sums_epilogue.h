// SumsEpilogue: the role that stores tiles of D whose sums the threads of another role leave in shared memory: it adds
// the copies of a sum, and partial sums of other CTAs, in a fixed order, and stores them as any epilogue does.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include "compiler/build/subtile_steps.h"
#include "compiler/build/tile_loop.h"

namespace laneshift::compiler {

struct SumsEpilogue {
  const CtaPlan& plan;
  const EpilogueTerms& terms;
  const SubtileSteps& steps;
  int channel = 0;  // of the sums
  int copies = 1;   // of each of them

  // The body of the role.
  void StoreTiles(ir::Builder& b, const TileLoop& tiles) const;

 private:
  void StoreTile(ir::Builder& b, const Corner& corner, ir::ValueId sums, const TensorScales& scales) const;
};

}  // namespace laneshift::compiler
