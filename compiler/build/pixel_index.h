// PixelIndex: where the rows of an implicit GEMM are in the images of a convolution, as ops
// (compiler/contraction/conv_geometry.h).
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/contraction/conv_geometry.h"
#include "ir/builder.h"

namespace laneshift::compiler {

struct PixelIndex {
  explicit PixelIndex(const ConvGeometry& geometry)
      : dimensions(geometry.planes ? 3 : 2), masks_border(geometry.masks_border) {}

  size_t dimensions;
  bool masks_border;

  // Position -> (column, row, [plane,] image), in output pixels.
  std::vector<ir::ValueId> Decode(ir::Builder& b, ir::ValueId position) const;
  // Where in x the activations of a tile start that begins at `position`: the first channel of the group, column, row,
  // [plane,] image.
  std::vector<ir::ValueId> TileStart(ir::Builder& b, ir::ValueId position, ir::ValueId group) const;

 private:
  std::vector<ir::ValueId> PixelStart(ir::Builder& b, ir::ValueId position, ir::ValueId group) const;
};

}  // namespace laneshift::compiler
