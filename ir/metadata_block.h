// Structured sparsity of A (Sparsity::kA): groups of elements, their codes, and the layout of metadata in memory.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "ir/layout.h"
#include "ir/stored_tensor.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

// Adjacent elements along K of which half are stored. They are `units` units of `elements / units` elements, and a unit
// is stored or not as a whole: two of four elements; of those of 4 bits two of four pairs; of tf32, whose metadata
// counts halves of elements, one of two.
struct SparseGroup {
  int elements;
  int units;

  int kept() const { return elements / 2; }
  bool HasPairs() const { return elements > units; }
  bool operator==(const SparseGroup&) const = default;
};
// Here and below `operand_bits` are those of an element of A in shared memory (MmaKindInfo::operand_bits): e2m1 is
// padded to 8 in some kinds of instruction.
SparseGroup SparseGroupOf(int operand_bits);
// Those of a problem's A.
int OperandBitsOf(const GemmProblem& problem);

// Elements of K that a row of A has in memory.
constexpr int64_t StoredDepth(Sparsity sparse, int64_t k) { return sparse == Sparsity::kA ? k / 2 : k; }

// The metadata of a group is a code of four bits: the index of its first stored unit in bits 1:0 and of its second one
// in bits 3:2; of tf32 0x4 for the first element and 0xe for the second one (PTX ISA, tcgen05.mma.sp). All codes, in
// ascending order of what they keep.
std::span<const uint8_t> SparseCodes(int operand_bits);
// The elements of a group that a code keeps, one bit each; 0: it is no code.
unsigned KeptElements(int operand_bits, uint8_t code);

// A block of metadata: that of 128 rows and of `Depth` elements of K, 128 lines of 16 bytes, as the tensor core has it
// in 128 lanes and four columns of Tensor Memory.
struct MetadataBlock {
  static constexpr int kRows = 128;
  static constexpr int kLines = 128, kLineBytes = 16;
  static constexpr int kBytes = kLines * kLineBytes;
  static constexpr int kColumns = 4;

  // 256 elements of 4 bits, 128 of 8 or 16, 64 of tf32.
  static int Depth(int operand_bits) { return kLineBytes * 8 / 4 * SparseGroupOf(operand_bits).elements; }
  // A tile of them: bytes that no swizzle permutes.
  static bool Holds(const SharedLayout& layout) {
    return layout.type == DataType::kU8 && layout.swizzle == Swizzle::kNone;
  }
};

// Where the code of a group is in the metadata of a matrix: byte, and its lower or upper four bits.
struct CodePosition {
  int64_t byte;
  int shift;  // 0 or 4
};
// Of the group of element `k` of row `row`, of `rows` rows.
CodePosition PositionOfCode(int operand_bits, int64_t rows, int64_t row, int64_t k);

// The blocks of `batch` matrices of `rows` rows of `k` elements: those of all rows follow each other, then those of the
// next elements of K, then those of the next matrix. In units of lines: matrices are the rows of one block of K.
StoredTensor MetadataBlocks(int operand_bits, int64_t batch, int64_t rows, int64_t k);

}  // namespace laneshift::ir
