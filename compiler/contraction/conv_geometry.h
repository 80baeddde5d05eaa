// ConvGeometry: a convolution as a GEMM over the positions of a walk, as far as the schedule decides it.
//
// Row m of A and D is a position of a walk over the images: `walk_q` positions a row, of which the first Q are output
// pixels; see ir/program.h. With reuse of what was loaded, the operand of filter column s is the one of column 0 moved
// by whole rows: input column q * stride + s * dilation lies in the walk of phase (s * dilation) mod stride, so many
// rows on as stride divides s * dilation; a phase counts its rows from its first tap on. The walk is longer than Q by
// the most rows that a tap moves, so that no tap of an output pixel leaves the pixel's row.
//
// Where the border is masked (border=mask), the walk has the output's rows, which are those of the input: the tap that
// stands on the output pixel itself is multiplied first, whole, and the others leave out the lanes whose pixel they
// would take from another row. A tile of activations begins some positions before its first output.
//
// Thread-safety: values and pure functions.
#pragma once

#include <vector>

#include "compiler/contraction/operand_source.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

struct ConvGeometry {
  // Where a filter column finds its operand.
  struct Column {
    int s = 0;       // of the filter
    int phase = 0;   // index into phases
    int row = 0;     // rows behind the tile's first one
    int chain = 0;   // columns of a chain follow each other without a step back
    int beside = 0;  // masked borders: columns to the right of the output pixel
  };

  // Position `out` of the output and tap `t` meet pixel out * stride - pad + t * dilation, in each dimension.
  Spatial input{}, output{}, filter{}, stride{}, pad{}, dilation{};
  int64_t images = 1;
  bool planes = false;                // three spatial dimensions
  int64_t channels = 0, filters = 0;  // of a group
  int64_t taps = 1;                   // of a filter
  int64_t walk_q = 0;
  int64_t positions = 0;          // rows of A and D
  std::vector<int> phases{};      // with reuse: the input columns by which each phase's walk is displaced
  std::vector<Column> columns{};  // with reuse: the filter's, phase after phase, rows ascending
  int halo = 0;                   // rows of a tile beside one for each output
  int lost = 0;                   // fused shifts: rows of each 32 that a chain leaves without an operand

  bool masks_border = false;  // filter columns beside the image have no zeros, but lanes that are left out

  // Threads gather a small filter of few channels, all of whose output channels fit one tile: it stays in shared
  // memory, and the kernel is made for its taps.
  bool known_filter = false;

  bool Reuses() const { return !columns.empty(); }
  int Chains() const { return columns.empty() ? 0 : columns.back().chain + 1; }
  std::vector<Column> ColumnsOf(int chain) const;
  // Output positions of a tile.
  int TileRows(const Schedule& schedule) const;
  // Elements of K that lie together and that the loop over K walks in blocks: the channels of a tap, or all of a
  // filter where threads gather the operand.
  int64_t run = 0;

  // The filter column that stands on the output pixel itself, or -1: whether borders can be masked depends on it.
  int64_t CentreColumn() const;
};

// `x`: the problem's images.
ConvGeometry GeometryOf(const ConvProblem& problem, const OperandSource& x, const Schedule& schedule);

}  // namespace laneshift::compiler
