// A matrix instruction as a value: operand types and shape. The kinds are the rows of ir/mma_kinds.def.
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "laneshift/problem.h"

namespace laneshift::ir {

enum class MmaKind : uint8_t {
#define MMA_KIND(Name, ...) k##Name,
#define MMA_TYPE(...)
#include "ir/mma_kinds.def"
};

// What one instruction reads of a row of A or B along K: 32 bytes.
inline constexpr int kMmaRowBits = 256;
// The same of the longer instructions that targets have for elements of so many bits (MmaUnit::long_rows), dense ones
// only: 48 bytes. They multiply blocks of K that are whole such rows, which no power of two is.
inline constexpr int kMmaLongRowBits = 384, kLongRowElementBits = 4;
constexpr bool HasLongRows(int operand_bits, int tile_k) {
  return operand_bits == kLongRowElementBits && tile_k % (kMmaLongRowBits / kLongRowElementBits) == 0;
}
// The least block of K of whole long rows and whole spans of 128 bytes.
inline constexpr int kLongRowTile = std::lcm(kMmaLongRowBits, 1024) / kLongRowElementBits;

struct MmaKindInfo {
  enum Pairing : uint8_t { kSameType, kAnyTypes };

  std::string_view text;
  int operand_bits;  // of an element of A or B in shared memory, where narrower types are padded
  Pairing pairing;
  DataType accumulator;
  int scale_run;  // elements along K for which a scale factor is; 0: the instruction has none
  int llvm;

  // Elements along K of one instruction.
  int Depth() const { return kMmaRowBits / operand_bits; }
};
const MmaKindInfo& InfoOf(MmaKind kind);

// The kind whose instructions multiply A of one type by B of another, with a scale factor for `scale_run` elements
// along K (0: without) and elements of `operand_bits` in shared memory (0: any), if any.
std::optional<MmaKind> MmaKindOf(DataType a, DataType b, int scale_run = 0, int operand_bits = 0);
// The kind that has this operand type, if any: the first one without scale factors.
std::optional<MmaKind> MmaKindOf(DataType type);
// Whether elements of the type are padded in shared memory (SharedLayout::padded).
bool IsPadded(MmaKind kind, DataType type);
// The type's code in an instruction descriptor. REQUIRES: it is an operand of the kind.
int MmaTypeCode(MmaKind kind, DataType type);

inline bool CanMultiply(DataType a, DataType b, int scale_run = 0) { return MmaKindOf(a, b, scale_run).has_value(); }
// Of the kinds with such scale factors, in words: "both f16, both bf16, …, or each s8 or u8".
std::string OperandPairs(int scale_run = 0);

struct MmaOperand {
  DataType type = DataType::kBf16;
  bool mn_major = false;  // contiguous along M or N, not along K
};

// One instruction: an m x n accumulator plus the product of m x k elements of A and k x n of B.
struct MmaInstruction {
  MmaKind kind{};
  MmaOperand a{}, b{};
  int m = 0, n = 0, k = 0;
  bool saturates = false;  // of integers: the sums are clamped to the range of the accumulator
  int scale_byte = 0;      // with scale factors: the byte of their 32-bit cells that holds them
  bool sparse = false;     // A is 2:4 sparse: k/2 of its elements are stored
  int selector = 0;        // with a sparse A of 16 or 32 bits: which of an aligned pair of columns has its metadata

  DataType accumulator() const { return InfoOf(kind).accumulator; }
  // Whether it is a longer one (kMmaLongRowBits).
  bool HasLongRows() const { return !sparse && k * InfoOf(kind).operand_bits == kMmaLongRowBits; }
  // The instruction of the same operands with a sparse A: it reads as much of A, and twice as much of B.
  MmaInstruction Sparse() const;
};
// REQUIRES: a kind multiplies the types.
MmaInstruction InstructionOf(MmaOperand a, MmaOperand b, int m, int n, int scale_run = 0);

// Elements along K that one instruction multiplies of operands of this type without scale factors. REQUIRES: it is an
// operand of a kind.
int MmaDepth(DataType type);
// What products of operands of this type are summed in: f32 or s32. REQUIRES: it is an operand of a kind.
DataType AccumulatorType(DataType type);

}  // namespace laneshift::ir
