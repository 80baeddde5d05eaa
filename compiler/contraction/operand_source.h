// OperandSource: an operand of a contraction, as memory holds it and as the contraction reads it.
//
// A source knows its element type, its layout in memory, which indices of the contraction its rows and the elements
// of a row are, and what the caller promises about its base. Any source may be A or B; how it is loaded (by which of
// the TMA's modes, or by threads) follows from its kind and the schedule. docs/adding-an-operand-source.md says what a
// new kind needs. Thread-safety: values and pure functions.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "ir/element_type.h"
#include "ir/program.h"
#include "ir/stored_tensor.h"
#include "laneshift/problem.h"

namespace laneshift::compiler {

enum class SourceKind : uint8_t {
  kMatrix,  // rows of a matrix, one matrix for each index of the batch; tiled tensor maps
  kPixels,  // positions of the implicit-GEMM index; elements are channels; im2col tensor maps, or gathered by threads
  kFilter,  // filters: one row each, in runs of the channels of a tap; tiled tensor maps
};

struct OperandSource {
  SourceKind kind = SourceKind::kMatrix;
  std::string_view name;  // as the problem calls it: "a", "x"
  ir::StoredTensor memory{};
  ir::Axis outer_axis = ir::Axis::kM, inner_axis = ir::Axis::kK;  // of the rows, and of the elements of a row
  // Elements of a row that belong to one matrix of the batch: all of a matrix, the channels of one group of an image.
  int64_t run = 0;
  int64_t align = 0;          // bytes, of the base: what the caller promises
  int64_t first = 0;          // element at which it begins: pixels of a phase (GradientPhase) are some of a tensor's
  bool shared = false;        // one matrix for the whole batch: A, C and D of groups of rows
  bool indexed = false;       // an index vector says which of its rows a row of the product is
  bool divided = false;       // its rows are K, of which each matrix of the batch has those from an offset on
  int compression = 1;        // elements of K for each one that is stored: 2 of a sparse A
  ir::StoredTensor scales{};  // its scale factors (scale=mx, nv: blocks of them; scale=block), as copies read them

  DataType type() const { return memory.type; }
  // REQUIRES: elements are whole bytes.
  int64_t ElementBytes() const { return DataTypeBytes(memory.type); }
  int64_t BytesOf(int64_t elements) const { return ir::BytesOf(memory.type, elements); }
  // Matrices, and rows of one, `Pitch()` apart; REQUIRES: kMatrix. One that is divided is seen as matrices that begin
  // at each of its rows: row r of matrix f is row f + r. Copies that begin before row 0 of matrix f then bring zeros
  // instead of the rows before f.
  int64_t Matrices() const { return divided ? MatrixRows() : memory.extents[ir::StoredTensor::kImage]; }
  int64_t MatrixRows() const { return memory.extents[ir::StoredTensor::kPixel]; }
  // From a row of the contraction to the next one where both are in one matrix or row of pixels.
  int64_t Pitch() const { return memory.pitches[RowDimension()]; }
  // Whether rows and matrices of its scale factors are whole multiples of 16 bytes apart, by which the TMA steps.
  bool HasAlignedScaleRows() const;
  // From matrix to matrix, image to image, tap to tap.
  int64_t Stride() const {
    if (divided) return Pitch();
    return memory.pitches[kind == SourceKind::kFilter ? ir::StoredTensor::kPixel : ir::StoredTensor::kImage];
  }

 private:
  ir::StoredTensor::Dimension RowDimension() const {
    return kind == SourceKind::kFilter ? ir::StoredTensor::kImage : ir::StoredTensor::kPixel;
  }
};

// As the caller stores it. REQUIRES: the problem is complete.
OperandSource SourceOf(const Problem& problem, ir::Operand operand);

// A stride that kernels use, in elements, with its name in messages.
struct SourceDistance {
  std::string_view name;
  int64_t elements = 0;
  bool used = false;  // the tensor has more than one of the items that the stride separates
};
// From the innermost dimension outwards.
std::array<SourceDistance, 4> DistancesOf(const OperandSource& source);

// The same rows as those of one matrix, if they are evenly spaced: pixels of images, or filters of one tap.
std::optional<OperandSource> AsMatrix(const OperandSource& source);

// The widest access in elements, at most `limit`, for which every start and end of a run is aligned: that many
// elements at a multiple of it are entirely inside or entirely outside.
int AccessWidth(const OperandSource& source, int limit);
// Bytes, a power of two up to 16, of which every row of a matrix begins at a multiple.
int RowAlignment(const OperandSource& source);
// Elements of one access when threads gather pixels: 16 bytes of them where every such run of channels is one aligned
// access, else 1.
int GatherWidth(const OperandSource& pixels);

// Whether the taps of a filter are at a constant stride, and with `dense` without gaps. REQUIRES: kFilter.
bool TapsAreEven(const OperandSource& filter, bool dense);

}  // namespace laneshift::compiler
