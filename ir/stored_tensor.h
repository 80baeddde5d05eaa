// StoredTensor: the layout in memory of an operand of any kind of problem.
//
// Thread-safety: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/mma.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

// The role of an operand, for all kinds of problem: x, w, z and y of a convolution are A, B, C and D of its GEMM. Those
// of the gradient of x are y, w, z and x, those of the gradient of w are y, x, z and w.
// kTensorScaleA, B: the f32 scale factors of whole operands besides those of blocks (Scaling::kNv).
// kScaleD: the f32 factor of all of D. kBlockScaleD: those of its blocks, which are written (OutputScaling).
// kMetadataA: which elements of a sparse A are stored (ir/metadata_block.h).
// kRowIndicesA, D: the rows of A, and of C and D, that rows of groups are (RowIndices).
enum class OperandRole : uint8_t {
  kA,
  kB,
  kC,
  kD,
  kBias,
  kScaleA,
  kScaleB,
  kScaleD,
  kTensorScaleA,
  kTensorScaleB,
  kGroupOffsets,
  kGroupSizes,
  kBlockScaleD,
  kMetadataA,
  kRowIndicesA,
  kRowIndicesD,
};
inline constexpr size_t kRoles = 16;
// Every role, in order.
inline constexpr std::array<OperandRole, kRoles> kAllRoles = [] {
  std::array<OperandRole, kRoles> roles{};
  for (size_t i = 0; i < kRoles; ++i) roles[i] = static_cast<OperandRole>(i);
  return roles;
}();
static_assert(kAllRoles.back() == OperandRole::kRowIndicesD);
constexpr bool IsScale(OperandRole role) {
  return (role >= OperandRole::kScaleA && role <= OperandRole::kTensorScaleB) || role == OperandRole::kBlockScaleD;
}
constexpr bool IsRowIndices(OperandRole role) {
  return role == OperandRole::kRowIndicesA || role == OperandRole::kRowIndicesD;
}
// Whether a kernel writes it, all of it, and does not read it.
constexpr bool IsWritten(OperandRole role) { return role == OperandRole::kD || role == OperandRole::kBlockScaleD; }

// Runs of contiguous elements, in up to four outer dimensions. Distances are in elements.
struct StoredTensor {
  // Outermost first: images of planes of rows of pixels of channels; filters of taps, whose columns are the pixels;
  // matrices whose rows are the pixels. Dimensions that a tensor does not have are of extent 1.
  enum Dimension : size_t { kImage, kPlane, kRow, kPixel, kElement };
  static constexpr size_t kDimensions = 5;
  using Dimensions = std::array<int64_t, kDimensions>;

  DataType type = DataType::kF32;
  Dimensions extents = {1, 1, 1, 1, 1};
  Dimensions pitches = {0, 0, 0, 0, 1};  // the last one is 1
  // The number of dimensions that the problem has: the innermost ones; of three and more kImage and the innermost
  // others.
  int rank = 1;

  // `batch` matrices of `outer` rows; one matrix has rank 2.
  static StoredTensor Matrices(DataType type, int64_t batch, int64_t outer, int64_t inner, int64_t pitch,
                               int64_t stride);

  int64_t Inner() const { return extents[kElement]; }
  // Of the dimensions that the problem has.
  std::vector<int64_t> Shape() const;
  int64_t Rows() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  // The element at which row `row`, counted over all outer dimensions, begins.
  int64_t RowStart(int64_t row) const;
  int64_t Elements() const { return Rows() * Inner(); }  // without padding
  // From the first element to the last one.
  size_t Bytes() const;
  bool Padded() const { return RowStart(Rows() - 1) + Inner() != Elements(); }
  // The coordinates of the element, counted without padding: "(3, 7, 0, 12)".
  std::string PrintIndex(int64_t element) const;

 private:
  bool Means(size_t dimension) const {
    if (dimension == kImage) return rank >= 3;
    return dimension > kElement - static_cast<size_t>(rank >= 3 ? rank - 1 : rank);
  }
};

// Columns of D: half of B's if the epilogue has a gated linear unit. For a convolution the channels of y, then half as
// many as filters; of x, or of a filter, where D is a gradient.
int64_t OutputColumns(const GemmProblem& problem);
int64_t OutputColumns(const ConvProblem& problem);
int64_t OutputColumns(const GroupedGemmProblem& problem);

// REQUIRES: the problem is complete. A bias that the problem does not have has no elements.
StoredTensor Stored(const GemmProblem& problem, OperandRole role);
StoredTensor Stored(const ConvProblem& problem, OperandRole role);
StoredTensor Stored(const GroupedGemmProblem& problem, OperandRole role);
StoredTensor Stored(const Problem& problem, OperandRole role);

// An operand of the epilogue, in the order of EpilogueArguments.
struct EpilogueTensor {
  std::string name;  // "epilogue[0] (bias_n)"
  StoredTensor tensor;
  bool written = false;    // and not read
  bool reduction = false;  // a reduction, which adds to the value that is there
  bool matrix = false;     // has the layout of D
};
// REQUIRES: the problem is complete.
std::vector<EpilogueTensor> EpilogueTensors(const Problem& problem);

// Whether a kernel accesses the operand: C if beta is not 0, the bias if there is one, scale factors as `scale` says,
// offsets or sizes of groups if there are groups, index vectors as `rows` says, metadata of a sparse A.
bool Uses(const Problem& problem, OperandRole role);

// The alignment in bytes that the problem promises for the operand's base; 0: that of an element.
int64_t AlignmentOf(const Problem& problem, OperandRole role);

// Runs of kScaleRun in an extent, the last one possibly shorter.
constexpr int64_t ScaleRuns(int64_t extent) { return (extent + kScaleRun - 1) / kScaleRun; }
// Words in a line of 16 bytes of shared memory: scale factors, or four packed ones each.
inline constexpr int kFactorsOfLine = 4;
// Those of scale=block as ue8m0, a byte each (ScaleFactorType).
struct PackedFactors {
  static constexpr int kOfWord = 4, kOfLine = 16;
  // Of a row of A: words.
  static constexpr int64_t Words(int64_t k) { return (ScaleRuns(k) + kOfWord - 1) / kOfWord; }
  // Of a run of columns of B.
  static constexpr int64_t BytesOfColumns(int64_t k) { return (ScaleRuns(k) + kOfLine - 1) / kOfLine * kOfLine; }
};
// Of a tile of `columns` that begins at a multiple of them: the columns that always share a scale factor of
// scale=block, and the most runs that it has a part of.
constexpr int ColumnsOfScale(int columns) { return std::gcd(columns, static_cast<int>(kScaleRun)); }
constexpr int ScaleRunsOfTile(int columns) {
  return static_cast<int>(ScaleRuns(kScaleRun - ColumnsOfScale(columns) + columns));
}
// Scale factors that the tensor core multiplies by (Scaling::kMx, kNv): their type, and the elements along K for which
// there is one.
struct BlockScaling {
  DataType type;
  int run;
};
std::optional<BlockScaling> BlockScalingOf(Scaling scale);
// The same of a problem: where A is sparse, a factor is for as many stored elements of A, which are twice as many of K
// (PTX ISA, tcgen05.mma.sp with .block_scale).
std::optional<BlockScaling> BlockScalingOf(Scaling scale, Sparsity sparse);
// The same of D, along its columns.
std::optional<BlockScaling> BlockScalingOf(OutputScaling scale);

// That of a problem; only a GEMM has one.
OutputScaling OutputScalingOf(const Problem& problem);
// What it declares constant; only a GEMM does.
ConstantOperand ConstantOf(const Problem& problem);

// The kind of matrix instruction that multiplies such operands with such scale factors, if any.
std::optional<MmaKind> MmaKindOf(DataType a, DataType b, Scaling scale);
// What the TMA aligns the base, the pitches and the strides of an operand of type `type` to, in bytes: 32 if its tiles
// are padded, otherwise 16. (CUDA driver API, cuTensorMapEncodeTiled, globalAddress and globalStrides.)
int64_t TmaAlignmentOf(DataType type, std::optional<MmaKind> kind);

// A block of the 128x4 layout of such scale factors: 32 lines of 16 bytes.
struct ScaleBlock {
  static constexpr int kRows = 128, kFactors = 4;
  static constexpr int kLines = 32, kLineBytes = 16;
  static constexpr int kBytes = kLines * kLineBytes;
  // Lines are contiguous, so tensor maps see rows of many: as wide as a box may be, since the TMA is slow to fetch
  // short rows.
  static constexpr int kMapRowBytes = 256, kMapRowLines = kMapRowBytes / kLineBytes;
  static constexpr int kLaneRows = 32;  // rows of a column of Tensor Memory
  static constexpr int64_t Count(int64_t extent, int64_t unit) { return (extent + unit - 1) / unit; }
  // Blocks that the rows of any tile lie in, where tiles of `rows` rows follow each other.
  static constexpr int TileBlocks(int rows) {
    return static_cast<int>(Count(rows + kRows - std::gcd(rows, kRows), kRows));
  }
  // Columns of Tensor Memory that these take.
  static constexpr int TileColumns(int rows) { return TileBlocks(rows) * kRows / kLaneRows; }
  static constexpr bool Holds(DataType type) { return type == DataType::kUe8m0 || type == DataType::kUe4m3; }
};
// The blocks of `rows` rows with `k` elements each, of `batch` matrices: the lines of each 128 rows are a matrix.
StoredTensor ScaleBlocks(const BlockScaling& scaling, int64_t batch, int64_t rows, int64_t k);

// Of all scale factors that the problem has.
double ScaleBytes(const Problem& problem);

// Its name in the problem: "a" or "x".
std::string_view NameOf(const Problem& problem, OperandRole role);

}  // namespace laneshift::ir
