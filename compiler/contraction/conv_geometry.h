// ConvGeometry: a convolution as an implicit GEMM, with what the schedule decides about its index.
//
// Row m of A and D is a position of the implicit-GEMM index: rows of `padded_q` positions, of which the first Q are
// output pixels; see ir/program.h. With reuse of loaded tiles, the operand of filter column s is that of column 0
// displaced by whole rows: input column q * stride + s * dilation is in phase (s * dilation) mod stride, displaced by
// (s * dilation) / stride rows; a phase counts its rows from its first tap. Rows of the index are longer than Q by
// the largest displacement of a tap, so that no tap of an output pixel leaves the pixel's row.
//
// Where the border is masked (border=mask), the index has the output's rows, which equal those of the input: the tap at
// the output pixel itself is multiplied first, unmasked, and the others disable the lanes whose pixel would come from
// another row. A tile of activations begins some positions before its first output.
//
// Thread-safety: values and pure functions.
#pragma once

#include <vector>

#include "compiler/contraction/gradient_phase.h"
#include "compiler/contraction/operand_source.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

struct ConvGeometry {
  // Where a filter column finds its operand.
  struct Column {
    int s = 0;              // of the filter
    int phase = 0;          // index into phases
    int row = 0;            // rows after the tile's first one
    int chain = 0;          // columns of a chain follow each other without a step back
    int border_offset = 0;  // masked borders: columns to the right of the output pixel
  };

  // Position `out` of the output and tap `t` read pixel out * stride - pad + t * dilation, in each dimension.
  // A negative pad crops. Where strides divide, it is pixel (out - pad + t * dilation) / stride, and the tap meets no
  // pixel where that is no whole number: a gradient of x whose threads take all phases at once.
  Spatial input{}, output{}, filter{}, stride{}, pad{}, dilation{};
  Spatial first{};                 // of a gradient of x: its GradientPhase::first
  // Pixels of x that a position of its gradient is, in each dimension: all phases at once (GradientPatch). The columns
  // of the product are then filters for each of them, and `filters` counts all.
  Spatial patch{1, 1, 1};
  bool one_of_several = false;     // phases of a gradient of x, each a launch of the same kernel
  // Of a packed filter: tap u is tap last_tap - u * tap_step of the one in memory, of a patch as GradientPatch says,
  // whose taps tap_dilation divides.
  Spatial last_tap{}, tap_step{}, tap_dilation{1, 1, 1};
  bool divides = false;
  int64_t images = 1;
  bool planes = false;                // three spatial dimensions
  int64_t channels = 0, filters = 0;  // of a group
  int64_t taps = 1;                   // of a filter
  int64_t padded_q = 0;
  int64_t positions = 0;          // rows of A and D
  std::vector<int> phases{};      // with reuse: the displacement of each phase in input columns
  std::vector<Column> columns{};  // with reuse: the filter's, phase after phase, rows ascending
  int halo = 0;                   // rows of a tile in addition to one for each output
  int stale = 0;                  // fused shifts: stale rows of each 32 after a chain

  bool masks_border = false;  // filter columns outside of the image read no zeros; their lanes are disabled

  // Threads gather a small filter of few channels, all of whose output channels fit into one tile: it is resident in
  // shared memory, and the kernel is specialised for its taps.
  bool known_filter = false;

  bool Reuses() const { return !columns.empty(); }
  bool HasPatches() const { return patch != Spatial{1, 1, 1}; }
  int Chains() const { return columns.empty() ? 0 : columns.back().chain + 1; }
  std::vector<Column> ColumnsOf(int chain) const;
  // Output positions of a tile.
  int TileRows(const Schedule& schedule) const;
  // Contiguous elements of K that the loop over K reads in blocks: the channels of a tap, or all of a
  // filter where threads gather the operand.
  int64_t run = 0;
  // Adjacent outputs of a row that a thread computes directly; rows of the index are multiples of it.
  int direct_run = 1;
  // With reuse=direct: the outputs of a tile, or of a block of K that is positions, in each dimension, and the box of
  // pixels under them. The index goes through the outputs box by box, and through those of a box line by line.
  Spatial outputs_of_box{}, box{};

  bool HasBoxes() const { return outputs_of_box[kWidth] != 0; }

  // The filter column at the output pixel itself, or -1: borders can be masked only if there is one.
  int64_t CentreColumn() const;
};

// Whether a gradient of x is one contraction whatever its stride, not one for each phase.
inline bool TakesAllPhases(const Schedule& schedule) { return schedule.reuse == Reuse::kDirect; }

// Whether a gradient of x is one contraction of which a position is a patch of pixels, one of each phase: of pixels of
// so few bytes that most columns of a phase's tile would be idle, and if its taps take no more time than theirs.
bool TakesPatches(const ConvProblem& problem, const Schedule& schedule);

// With reuse=direct: adjacent outputs that a thread computes, or whose gradients it holds at a time.
inline constexpr int kDirectRuns[] = {8, 4}, kDirectGradientRuns[] = {8, 7, 4};
// Padding of a dimension whose strides divide, and a stride, are at most this: so many strides are added to what is
// divided by one, so that it is not negative.
inline constexpr int kMostPaddedStrides = 4096;
// Outputs of a line that a box has: all, or as even a part of them as runs allow.
int64_t ColumnsOfBox(const ConvGeometry& geometry);

// `images`: the problem's x, or the gradient of y that a gradient of x is computed from. `phase`: its number in
// PhasesOf(problem), for a gradient of x that has a contraction for each phase.
ConvGeometry GeometryOf(const ConvProblem& problem, const OperandSource& images, const Schedule& schedule,
                        size_t phase = 0);

}  // namespace laneshift::compiler
