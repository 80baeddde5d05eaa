// The pixel box of an im2col tensor map (cuTensorMapEncodeIm2col): the positions that it traverses.
//
// Along a dimension of extent L these are lower, lower + step, … up to L - 1 + upper. Order: width, height, depth.
// Thread-safety: pure functions.
#pragma once

#include <array>

#include "compiler/contraction/conv_geometry.h"

namespace laneshift::compiler {

struct Im2colBox {
  std::array<int64_t, 3> lower{}, upper{}, step{};
};

// The box of x whose positions are the rows of the GEMM: the pixels of the first filter column or, where borders are
// masked, the image.
inline Im2colBox BoxOfX(const ConvGeometry& geometry) {
  Im2colBox box;
  for (const int d : {kDepth, kHeight, kWidth}) {
    const auto i = static_cast<size_t>(kWidth - d);
    const bool whole = d == kWidth && geometry.masks_border;
    const int64_t stops = d == kWidth ? geometry.padded_q : geometry.output[static_cast<size_t>(d)];
    box.step[i] = geometry.stride[static_cast<size_t>(d)];
    box.lower[i] = whole ? 0 : -geometry.pad[static_cast<size_t>(d)];
    box.upper[i] = box.lower[i] + (stops - 1) * box.step[i] - (geometry.input[static_cast<size_t>(d)] - 1);
  }
  return box;
}

// The box of pixels that are read or stored where the index is, without taps: every pixel. REQUIRES: no position of the
// box of x is after the end of its row.
inline Im2colBox BoxOfY() { return {.lower = {0, 0, 0}, .upper = {0, 0, 0}, .step = {1, 1, 1}}; }

}  // namespace laneshift::compiler
