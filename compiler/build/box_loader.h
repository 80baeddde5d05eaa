// BoxLoader: the boxes of pixels under the outputs of a tile, or of a block of K that is positions, where threads
// multiply pixels from shared memory (ConvGeometry::HasBoxes).
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/contraction/contraction.h"
#include "ir/builder.h"

namespace laneshift::compiler {

class BoxLoader {
 public:
  // REQUIRES: `contraction` outlives the loader.
  explicit BoxLoader(const Contraction& contraction)
      : contraction_(contraction), geometry_(contraction.geometry), dimensions_(geometry_.planes ? 3 : 2) {}

  size_t dimensions() const { return dimensions_; }
  // Of an operand that is pixels: rows of pixels, of `channels` channels each.
  ir::SharedLayout TileOf(ir::Operand operand, int channels) const;
  // The first output of the box of this number, by dimension (width first), then its image.
  std::vector<ir::ValueId> FirstOutput(ir::Builder& b, ir::ValueId number) const;
  // Where strides divide: how far the first tap is from a pixel of dimension `d` at that output.
  ir::ValueId PhaseAt(ir::Builder& b, size_t d, ir::ValueId output) const;
  // Fills tile `tile` of the slot with the pixels of the operand.
  void Load(ir::Builder& b, ir::Operand operand, ir::ValueId slot, int tile, ir::ValueId channel,
            const std::vector<ir::ValueId>& first_output) const;

 private:
  ir::ValueId Dividend(ir::Builder& b, size_t d, ir::ValueId output) const;

  const Contraction& contraction_;
  const ConvGeometry& geometry_;
  const size_t dimensions_;
};

}  // namespace laneshift::compiler
