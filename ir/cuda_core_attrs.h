// Attributes of the ops that multiply on CUDA cores (ir/op.h): depthwise convolutions, the gradients of their filters,
// and matrices times a few vectors.
//
// Thread-safety: values.
#pragma once

#include "ir/element_type.h"
#include "ir/layout.h"

namespace laneshift::ir {

inline constexpr int kMostPixelsAtOnce = 4;  // of a line that a lane of a depthwise convolution holds
// A depthwise convolution: what the code is unrolled for. The filters are in a tile of taps x channels, the pixels in
// one of adjacent pixels of `line` a line and `lines` a plane.
struct DepthwiseAttrs {
  int tile = 0;  // of the filters
  FragmentKind fragment = FragmentKind::kRuns4;
  int columns = 1, stride = 1, dilation = 1;  // of the filter along w
  int line = 1, lines = 1;
  bool planes = false;    // three spatial dimensions
  bool reversed = false;  // the tile's last tap is the first: a gradient of x
  // Strides divide (ConvGeometry::divides): the first row of each run meets tap t along w at pixel (phase + t *
  // dilation) / stride after the lane's first one, and row j of the run at that of phase + j. Along h and d the op has
  // such phases as operands.
  bool divides = false;
  int phase = 0;
  int Rows() const { return kFragmentFacts[static_cast<size_t>(fragment)].rows_of_lane; }
  // The pixel of the line, from the lane's first one on, that is under the tap of a row of its run; -1: none.
  int PixelUnder(int row, int tap) const {
    if (!divides) return row * stride + tap * dilation;
    const int distance = phase + row + tap * dilation;
    return distance % stride == 0 ? distance / stride : -1;
  }
  // Pixels of a line that a lane reads for its rows, from the first one's on.
  int PixelsOfLine() const {
    const int last = divides ? (phase + Rows() - 1 + (columns - 1) * dilation) / stride
                             : (Rows() - 1) * stride + (columns - 1) * dilation;
    return last + 1;
  }
  bool operator==(const DepthwiseAttrs&) const = default;
};
// The gradient of its filters, whose sums threads hold. Of a slot with pixels the first tile has the gradients of y, in
// lines of `outputs`, the second one the pixels of x under them, adjacent ones of `line` a line and `lines` a plane;
// the tile of sums is of copies x taps x channels, in f32.
struct DepthwiseGradientAttrs {
  int run = 4;                                // adjacent positions whose gradients a lane holds
  int columns = 1, stride = 1, dilation = 1;  // of the filter along w
  int outputs = 1, line = 1, lines = 1;
  int rows = 1;         // of the filter, planes counted too, that a warp has
  int groups = 1;       // of warps, for all rows
  bool planes = false;  // three spatial dimensions
  bool whole = false;   // lines of outputs are whole runs
  // Warps without a whole copy of the sums to themselves stay idle; where there are fewer warps than groups, each has
  // one of several in turn, in as many passes over the positions.
  int Copies(int warps) const { return warps < groups ? 1 : warps / groups; }
  int Passes(int warps) const { return (groups + warps - 1) / warps; }
  int Sums() const { return rows * columns * kChannels; }  // of a lane
  static constexpr int kChannels = 8;                      // of a lane: 16 bytes of a pixel
  bool operator==(const DepthwiseGradientAttrs&) const = default;
};
// A matrix times a few vectors: B and rows of A where the rows of the accumulator run along n, otherwise A and columns
// of B. The lines of the matrix are its rows along K. The tile is of copies x vectors x lines, in f32. A lane reads
// adjacent elements of each line: 16 bytes, or with scale factors those of four.
struct GemvAttrs {
  int tile = 0;
  DataType type = DataType::kBf16;  // of B
  int vectors = 1;                  // that are multiplied
  int lines = 1;                    // that a warp multiplies at a time
  int copies = 1;                   // parts of each block of K, of which a warp has one
  int stages = 1;                   // blocks of K that are on their way while another one is multiplied
  int scale_run = 0;                // elements of K with one scale factor; 0: there are none
  bool halves = false;              // columns come alternately from two halves of B
  bool waits = false;               // for the previous kernel, once the first blocks of the matrix are on their way
  // Adjacent elements of K that a lane has.
  int Run() const {
    constexpr int kAccessBits = 128, kFactors = 4;  // of scale factors, a word
    return scale_run > 0 ? scale_run * kFactors : kAccessBits / static_cast<int>(DataTypeBits(type));
  }
  bool operator==(const GemvAttrs&) const = default;
};
// The sums of either, from copies of them in a tile.
struct LoadSumsAttrs {
  int tile = 0;
  int copies = 1;
  bool operator==(const LoadSumsAttrs&) const = default;
};

}  // namespace laneshift::ir
