// Sizes of the boxes of outputs that CUDA cores treat at a time (compiler::ConvGeometry::outputs_of_box), for the space
// of schedules.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <set>

#include "compiler/contraction/conv_geometry.h"

namespace laneshift::autotune {

// Outputs of boxes that are multiples of `runs` runs: of few lines, and of as many as cut an image into equal parts.
std::set<int> BoxSizes(const compiler::ConvGeometry& geometry, int64_t runs);

}  // namespace laneshift::autotune
