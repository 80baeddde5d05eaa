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

// Metadata in registers, of instructions that a warpgroup issues (wgmma.mma_async.sp): what the lanes of a warp have of
// the lines of its 16 rows, for a tile of `tile_k` elements of K. Lane l has 32-bit words of line l % 2 * 8 + l / 4. Of
// elements of 16 and 32 bits an instruction reads one word of each line, from the lanes with l % 4 below 2 or from the
// others, as its sparsity selector says; of 8 bits it reads two words, of which those lanes have the first one.
struct MetadataRegisters {
  static constexpr int kRows = 16;      // of a warp
  static constexpr int kHalfWords = 2;  // of a line
  int blocks = 1;                       // along K, each from a separate tile of lines
  int words = 0;                        // of a lane, of each block
  int step = 0;                         // words of the line from one of these to the next
  int upper = 0;                        // words from the first of the lanes below 2 to that of the others
  int instructions = 0;                 // that multiply a block, or half of one
  bool half = false;                    // the tile is half of a block, whose line has kHalfWords before or after it

  // Loads of a lane from shared memory, of each block: adjacent words are one.
  int Accesses() const { return step == 1 ? 1 : words; }

  // Whether the tile has whole blocks, or half of one whose instructions read one word of a line each.
  static bool Holds(int operand_bits, int tile_k);
  // REQUIRES: Holds().
  static MetadataRegisters Of(int operand_bits, int tile_k);

  // Where the metadata of an instruction are, the `number`-th along K of the tile.
  struct Source {
    int word;      // of the lane's, block after block
    int selector;  // of the instruction
  };
  Source SourceOf(int number) const {
    const int of_block = number % instructions;
    return {.word = number / instructions * words + of_block % words, .selector = of_block / words};
  }
};

}  // namespace laneshift::ir
