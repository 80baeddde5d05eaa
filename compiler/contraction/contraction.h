// Contraction: what a problem asks of the tensor cores, computed from it once: D[m,n] = sum over k of A[m,k] * B[k,n],
// for each matrix of a batch, with operands wherever their sources say.
//
// Rules, programs, parameters, traffic and estimates derive from this value, and do not ask what kind of problem it
// came from. Where operands are not matrices they ask their source. docs/adr/0028-*.md says how to add contractions.
// Thread-safety: values and pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/contraction/conv_geometry.h"
#include "compiler/contraction/operand_source.h"
#include "compiler/contraction/pixel_windows.h"
#include "ir/mma.h"
#include "ir/stored_tensor.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// What the taps are where D is filters: the gradient of filters.
enum class FilterTaps : uint8_t {
  kMatrices,       // those of each group of channels are matrices of the batch
  kColumns,        // adjacent columns of one matrix, of taps x channels columns (of a depthwise one: of each channel)
  kPackedColumns,  // the same, where B is packed as the im2col matrix (compiler/plan/im2col_packing.h)
  kWindows,        // elements of windows of packed pixels (compiler/contraction/pixel_windows.h)
};

struct Contraction {
  OperandSource a, b, c, d;
  std::string_view d_rows{};  // how messages call the rows of D: "D", "y"

  // Of one matrix of the batch.
  int64_t m = 0;        // rows of A and D: for images, positions of the implicit-GEMM index
  int64_t n = 0;        // columns of B
  int64_t columns = 0;  // of D: half of n where the epilogue is a gated linear unit
  // K is `runs` runs of `run` elements, each read in whole blocks: one run of a matrix, the channels of each tap.
  int64_t run = 0, runs = 1;
  bool follows = false;           // it is not the problem's first one
  int64_t batch = 1;              // matrices, groups of channels or of rows, or taps of the filters (FilterTaps)
  std::string_view batch_name{};  // as the problem's key: "batch", "groups"; of the gradient of filters "taps"

  bool grouped = false;     // the batch is groups of rows of one A, C and D, whose sizes only the device knows
  int64_t group_rows = 0;   // of each of these, as far as there is room; 0: they follow one another
  bool parts_of_k = false;  // the batch has parts of K, rows of one A and B, whose lengths only the device knows

  // Groups of channels that are one here (Schedule::merge_groups). Filters that are B are packed with zeros for the
  // channels of other groups; of filters that are D the blocks of one group's channels are stored.
  int64_t merged = 1;

  ConvGeometry geometry{};  // of pixels and filters
  FilterTaps taps = FilterTaps::kMatrices;
  PixelWindows windows{};  // where the taps are kWindows

  // What is applied to an accumulator.
  double alpha = 1, beta = 0;
  BiasAxis bias = BiasAxis::kNone;
  Scaling scale = Scaling::kNone;
  ScaleFactorType scale_type = ScaleFactorType::kF32;
  ScaleLayout scale_layout = ScaleLayout::k128x4;
  OutputScaling d_scale = OutputScaling::kNone;
  SumPrecision sum = SumPrecision::kF32;
  Numerics numerics = Numerics::kDefault;
  ConstantOperand constant = ConstantOperand::kNone;
  const Epilogue* steps = nullptr;  // the problem's

  const OperandSource& Of(ir::Operand operand) const;
  OperandSource& Of(ir::Operand operand);
  const Epilogue& epilogue() const { return *steps; }
  // The kind of matrix instruction that multiplies A by B.
  ir::MmaKind Kind() const;
  // Of an element of A or B in shared memory and Tensor Memory. A type of fewer bits is padded to it there.
  int OperandBits() const { return ir::InfoOf(Kind()).operand_bits; }
  int TileBytes(int elements) const { return elements * OperandBits() / 8; }
  bool IsPadded(const OperandSource& operand) const { return ir::IsPadded(Kind(), operand.type()); }
  // Rows of A and D are positions of the implicit-GEMM index, in a forward convolution and a gradient of its input.
  bool RowsArePixels() const { return a.kind == SourceKind::kPixels && a.outer_axis == ir::Axis::kM; }
  // K is positions of that index, and A and B pixels: the gradient of filters.
  bool SumsPixels() const { return a.kind == SourceKind::kPixels && a.outer_axis == ir::Axis::kK; }
  // Of a convolution: groups of channels, of which the batch has a matrix each, or one for each tap.
  int64_t ChannelGroups() const {
    return RowsArePixels() ? batch : taps == FilterTaps::kMatrices ? batch / geometry.taps : 1;
  }
  // D is blocks on the diagonal of the product: the filters of merged groups.
  bool IsDiagonal() const { return SumsPixels() && merged > 1; }
  // Of A only part of K is stored, with metadata (Sparsity::kA).
  bool IsSparse() const { return a.compression != 1; }
  // Scale factors that the tensor core multiplies by; `run` is of elements along K.
  std::optional<ir::BlockScaling> BlockScaling() const {
    return ir::BlockScalingOf(scale, IsSparse() ? Sparsity::kA : Sparsity::kNone);
  }
  // A kernel packs the pixels of B in another order than that of memory.
  bool PacksTaps() const { return taps == FilterTaps::kPackedColumns || taps == FilterTaps::kWindows; }
  // Partial sums of split-K slices are added by a separate kernel (compiler/plan/slice_sums.h).
  bool AddsSlicesApart(const Schedule& schedule) const;
  // Pixels that are read at the taps of a filter; others are read where the index is.
  bool ReadsTaps(ir::Operand operand) const { return operand == (SumsPixels() ? ir::Operand::kB : ir::Operand::kA); }
  // The same contraction under another schedule, cheaper than ContractionOf(). REQUIRES: `problem` is the one that this
  // contraction was made from.
  Contraction Under(const Problem& problem, const Schedule& schedule) const;
  // Whether the sizes of what the batch has are in device memory.
  bool HasDeviceSizes() const { return grouped || parts_of_k; }
  // Elements of a run of one matrix; of parts of K on average.
  int64_t Depth() const { return parts_of_k ? (run + batch - 1) / batch : run; }
  // Blocks of K of one matrix.
  int64_t Blocks(const Schedule& schedule) const;
  // Iterations of the loop over K of one tile, which split-K divides among CTAs. Where activations are reused, one
  // iteration has all columns of a filter row.
  int64_t Iterations(const Schedule& schedule) const;
};

// Whether each channel is a group: a convolution with one channel and one filter each, in any pass.
bool IsDepthwise(const Problem& problem);

// Contractions that a problem is: one, but a gradient of x is one for each of its phases (GradientPhase), unless the
// schedule takes them all at once, or a position is a patch of them (GradientPatch).
size_t ContractionsOf(const Problem& problem, const Schedule& schedule);
// The one of this number. REQUIRES: the problem is complete and outlives the contraction.
Contraction ContractionOf(const Problem& problem, const Schedule& schedule, size_t number = 0);
// The part that does not depend on a schedule: each position of the implicit-GEMM index is an output pixel.
Contraction ContractionOf(const Problem& problem);

}  // namespace laneshift::compiler
