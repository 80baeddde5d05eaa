// PixelWindows: pixels of few channels as the columns of a gradient of filters, without a copy for each tap.
//
// x is packed once, as lines: a line joins the `rows` next rows of an image pixel by pixel, with the padding of the
// convolution, and pads the channels so that each output position begins at a multiple of 16 bytes. What a filter
// reads of a line then is one run of adjacent elements, cut into windows of 128 bytes: for each output position the
// window is a row of a matrix whose rows overlap in memory. A window lower is the same matrix one line later, so that
// the tile of several windows is one box of lines, in which the columns overlap (ir::SharedLayout::step).
//
// K runs over blocks of `block_rows` x `block_columns` output positions. Blocks end with the image's rows: positions
// on the right of the image are zeros in both operands.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>

#include "compiler/contraction/conv_geometry.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

struct PixelWindows {
  int elements = 0;                         // of a window
  int rows = 0, channels = 0;               // of a packed pixel: those of the image, and elements of each
  int lines = 0;                            // that a filter reads, rounded up to whole tiles
  int spans = 0;                            // windows of a line
  int block_rows = 0, block_columns = 0;    // of a block of K
  int64_t image_lines = 0, line_bytes = 0;  // of the packed copy of an image, or of a plane of it

  // Columns of the product for one plane of taps.
  int64_t Columns() const { return int64_t{spans} * lines * elements; }
  // Windows of a tile, one below the other.
  int LinesOf(const Schedule& schedule) const { return schedule.tile_n / elements; }

  bool operator==(const PixelWindows&) const = default;
};

// Whether a filter's taps can be windows: no dilation along rows and columns, and a pixel of less than 16 bytes.
bool HasWindows(const ConvGeometry& geometry, int64_t element_bytes);
// REQUIRES: HasWindows().
PixelWindows WindowsOf(const ConvGeometry& geometry, int64_t element_bytes, const Schedule& schedule);
// Of the packed copy of all images.
int64_t LinesOf(const ConvGeometry& geometry, const PixelWindows& windows);
// Output positions of all blocks of K.
int64_t PositionsOf(const ConvGeometry& geometry, const PixelWindows& windows);

}  // namespace laneshift::compiler
