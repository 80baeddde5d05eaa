#include "compiler/contraction/pixel_windows.h"

#include <algorithm>

#include "base/integer_math.h"

namespace laneshift::compiler {
namespace {

constexpr int64_t kWindowBytes = 128;  // a swizzle span
constexpr int64_t kUnitBytes = 16;     // at a multiple of which a row of a tensor map begins
constexpr int kLeastColumns = 8;       // of a block: a group of rows of the swizzle

// Rows and columns of a block of K: what loads least. Rows of a block divide those of the image: the operands of a
// position below it would be pixels, not zeros.
void ShapeBlock(const ConvGeometry& geometry, const Schedule& schedule, PixelWindows& windows) {
  const int64_t further = windows.LinesOf(schedule) - 1;
  int64_t least = 0;
  windows.block_rows = 1;
  windows.block_columns = schedule.tile_k;
  for (int64_t rows = 1; schedule.tile_k / rows >= kLeastColumns; rows *= 2) {
    if (geometry.output[kHeight] % rows != 0) break;
    const int64_t columns = schedule.tile_k / rows;
    const int64_t blocks = geometry.output[kHeight] / rows * base::CeilDiv(geometry.output[kWidth], columns);
    const int64_t loaded = blocks * columns * (2 * rows + further);
    if (least != 0 && loaded >= least) continue;
    least = loaded;
    windows.block_rows = static_cast<int>(rows);
    windows.block_columns = static_cast<int>(columns);
  }
}

}  // namespace

bool HasWindows(const ConvGeometry& geometry, int64_t element_bytes) {
  return geometry.channels * element_bytes < kUnitBytes && geometry.dilation[kHeight] == 1 &&
         geometry.dilation[kWidth] == 1;
}

PixelWindows WindowsOf(const ConvGeometry& geometry, int64_t element_bytes, const Schedule& schedule) {
  PixelWindows windows{.elements = static_cast<int>(kWindowBytes / element_bytes)};
  const int64_t stride = geometry.stride[kWidth];
  const int64_t rows = std::min(geometry.stride[kHeight], geometry.filter[kHeight]);
  int64_t channels = geometry.channels;
  while (stride * rows * channels * element_bytes % kUnitBytes != 0) ++channels;
  const int64_t pixel = rows * channels;
  windows.rows = static_cast<int>(rows);
  windows.channels = static_cast<int>(channels);
  windows.spans = static_cast<int>(base::CeilDiv(geometry.filter[kWidth] * pixel, int64_t{windows.elements}));
  const int64_t lines = base::CeilDiv(geometry.filter[kHeight], rows);
  const int64_t of_tile = std::max(1, windows.LinesOf(schedule));
  windows.lines = static_cast<int>(base::RoundUp(lines, of_tile));
  windows.image_lines = geometry.output[kHeight] + lines - 1;
  const int64_t elements = (geometry.output[kWidth] - 1) * stride * pixel + int64_t{windows.spans} * windows.elements;
  windows.line_bytes = base::RoundUp(elements * element_bytes, kUnitBytes);
  ShapeBlock(geometry, schedule, windows);
  return windows;
}

int64_t LinesOf(const ConvGeometry& geometry, const PixelWindows& windows) {
  return geometry.images * geometry.input[kDepth] * windows.image_lines;
}

int64_t PositionsOf(const ConvGeometry& geometry, const PixelWindows& windows) {
  return geometry.images * geometry.output[kDepth] * geometry.output[kHeight] *
         base::RoundUp(geometry.output[kWidth], int64_t{windows.block_columns});
}

}  // namespace laneshift::compiler
