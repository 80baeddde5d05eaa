#include "ir/metadata_block.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/integer_math.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "laneshift/sparsity.h"

namespace laneshift::ir {
namespace {

constexpr uint8_t kPairCodes[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
constexpr uint8_t kHalfCodes[] = {0x4, 0xe};

}  // namespace

SparseGroup SparseGroupOf(int operand_bits) {
  if (operand_bits == 32) return {.elements = 2, .units = 2};
  return operand_bits == 4 ? SparseGroup{.elements = 8, .units = 4} : SparseGroup{.elements = 4, .units = 4};
}

int OperandBitsOf(const GemmProblem& problem) {
  return InfoOf(*MmaKindOf(problem.a, problem.b, problem.scale)).operand_bits;
}

std::span<const uint8_t> SparseCodes(int operand_bits) {
  if (SparseGroupOf(operand_bits).units == 2) return kHalfCodes;
  return kPairCodes;
}

unsigned KeptElements(int operand_bits, uint8_t code) {
  const SparseGroup group = SparseGroupOf(operand_bits);
  const int of_unit = group.elements / group.units;
  const auto unit = [&](int index) { return ((1u << of_unit) - 1) << index * of_unit; };
  for (const uint8_t known : SparseCodes(operand_bits)) {
    if (known != code) continue;
    // A code of tf32 names the two halves of the element that is stored.
    if (group.units == 2) return 1u << (code & 3) / 2;
    return unit(code & 3) | unit(code >> 2);
  }
  return 0;
}

// The lines are lanes, and a line has the codes of four columns. Elements of 8 bits and fewer: a lane has the codes of
// one row in the order of K. Wider ones: an instruction reads one column; of each 16 rows the first and the last eight
// share lanes, with 16 bits each, and each half of the instruction's K has eight of the lanes.
CodePosition PositionOfCode(int operand_bits, int64_t rows, int64_t row, int64_t k) {
  constexpr int kBitsOfCode = 4, kCodesOfHalf = 4;
  const int64_t depth = MetadataBlock::Depth(operand_bits), block_rows = base::CeilDiv(rows, MetadataBlock::kRows);
  const int64_t block = k / depth * block_rows + row / MetadataBlock::kRows;
  const int64_t code = k % depth / SparseGroupOf(operand_bits).elements, of_block = row % MetadataBlock::kRows;
  int64_t line = of_block, bit = code * kBitsOfCode;
  if (operand_bits > 8) {
    const int64_t half = code / kCodesOfHalf;
    line = of_block % 8 + 8 * (half % 2) + of_block / 16 * 16;
    bit = half / 2 * 32 + of_block / 8 % 2 * 16 + code % kCodesOfHalf * kBitsOfCode;
  }
  const int64_t byte = block * MetadataBlock::kBytes + line * MetadataBlock::kLineBytes + bit / 8;
  return {.byte = byte, .shift = static_cast<int>(bit % 8)};
}

bool MetadataRegisters::Holds(int operand_bits, int tile_k) {
  const int depth = MetadataBlock::Depth(operand_bits);
  return tile_k % depth == 0 || (operand_bits > 8 && 2 * tile_k == depth);
}

MetadataRegisters MetadataRegisters::Of(int operand_bits, int tile_k) {
  LS_CHECK(Holds(operand_bits, tile_k), "k=", tile_k, " of ", operand_bits, " bits is not whole blocks of metadata");
  const int depth = MetadataBlock::Depth(operand_bits);
  if (tile_k < depth) return {.words = 1, .step = 1, .upper = 1, .instructions = 2, .half = true};
  const int blocks = tile_k / depth;
  // Of the four words of a line the lanes below 2 have the first two, which a selector of 0 names.
  if (operand_bits > 8) return {.blocks = blocks, .words = 2, .step = 1, .upper = 2, .instructions = 4};
  return {.blocks = blocks, .words = 2, .step = 2, .upper = 1, .instructions = 2};
}

StoredTensor MetadataBlocks(int operand_bits, int64_t batch, int64_t rows, int64_t k) {
  const int64_t lines = base::CeilDiv(rows, MetadataBlock::kRows) * MetadataBlock::kLines;
  return StoredTensor::Matrices(DataType::kU8, batch * base::CeilDiv(k, MetadataBlock::Depth(operand_bits)), lines,
                                MetadataBlock::kLineBytes, MetadataBlock::kLineBytes,
                                lines * MetadataBlock::kLineBytes);
}

}  // namespace laneshift::ir

namespace laneshift {
namespace {

using base::Cat;

Result<GemmProblem> SparseGemm(const Problem& problem) {
  LS_ASSIGN(const Problem complete, CompleteProblem(problem));
  const GemmProblem* gemm = std::get_if<GemmProblem>(&complete);
  if (gemm != nullptr && gemm->sparse == Sparsity::kA) return *gemm;
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat(PrintProblem(complete), " has no sparse operand; a gemm with sparse=a has one"));
}

// The bits of element `index`: elements are whole bytes, or 4 or 6 bits that follow each other.
uint32_t LoadElement(const std::byte* bytes, int width, int64_t index) {
  uint32_t bits = 0;
  if (width % 8 == 0) {
    std::memcpy(&bits, bytes + index * (width / 8), static_cast<size_t>(width / 8));
    return bits;
  }
  for (int i = 0; i < width; ++i) {
    const int64_t bit = index * width + i;
    bits |= (std::to_integer<uint32_t>(bytes[bit / 8]) >> bit % 8 & 1) << i;
  }
  return bits;
}
// REQUIRES: the element is 0.
void StoreElement(std::byte* bytes, int width, int64_t index, uint32_t bits) {
  if (width % 8 == 0) {
    std::memcpy(bytes + index * (width / 8), &bits, static_cast<size_t>(width / 8));
    return;
  }
  for (int i = 0; i < width; ++i) {
    const int64_t bit = index * width + i;
    bytes[bit / 8] |= std::byte((bits >> i & 1) << bit % 8);
  }
}

// The elements of A by row and index along K, in memory with the pitches of `memory`.
class ElementsOfA {
 public:
  ElementsOfA(const GemmProblem& problem, const ir::StoredTensor& memory)
      : along_k_(problem.a_major == Major::kK), memory_(memory) {}

  // The index of an element.
  int64_t At(int64_t matrix, int64_t row, int64_t k) const {
    const int64_t outer = along_k_ ? row : k, inner = along_k_ ? k : row;
    const int64_t of_matrix = memory_.extents[ir::StoredTensor::kPixel];
    return memory_.RowStart(matrix * of_matrix + outer) + inner;
  }
  Status CheckSize(std::string_view what, size_t bytes) const {
    if (bytes == memory_.Bytes()) return Ok();
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat(what, " has ", bytes, " bytes, the problem needs ", memory_.Bytes()));
  }

 private:
  const bool along_k_;
  const ir::StoredTensor memory_;
};

ElementsOfA DenseElements(const GemmProblem& problem) {
  GemmProblem dense = problem;
  dense.sparse = Sparsity::kNone;
  const bool along_k = problem.a_major == Major::kK;
  dense.lda = along_k ? problem.k : problem.m;
  dense.stride_a = problem.m * problem.k;
  return {dense, ir::Stored(dense, ir::OperandRole::kA)};
}
ElementsOfA StoredElements(const GemmProblem& problem) { return {problem, ir::Stored(problem, ir::OperandRole::kA)}; }

// Neither zero nor a negative zero.
bool IsNonZero(DataType type, uint32_t bits) {
  return (ir::IsInteger(type) ? bits : bits & ~(uint32_t{1} << (ir::BitsOf(type) - 1))) != 0;
}

// The first code that keeps all of `elements`, one bit each; 0: there is none.
uint8_t CodeThatKeeps(int operand_bits, unsigned elements) {
  for (const uint8_t code : ir::SparseCodes(operand_bits)) {
    if ((elements & ~ir::KeptElements(operand_bits, code)) == 0) return code;
  }
  return 0;
}

struct GroupPlace {
  int64_t matrix, row, k;
};
std::string NameOfGroup(const GemmProblem& problem, const GroupPlace& place) {
  const int group = ir::SparseGroupOf(ir::OperandBitsOf(problem)).elements;
  return Cat("row ", place.row, problem.batch > 1 ? Cat(" of matrix ", place.matrix) : "", ", group ", place.k / group,
             " (k=", place.k, " to ", place.k + group - 1, ")");
}

// Why a group is not sparse, by the elements that are not zero, one bit each.
std::string TooMany(const ir::SparseGroup& group, unsigned present) {
  if (!group.HasPairs())
    return Cat(std::popcount(present), " elements that are not zero; at most ", group.kept(), " may be");
  int pairs = 0;
  for (int i = 0; i < group.units; ++i) pairs += (present >> 2 * i & 3) != 0 ? 1 : 0;
  return Cat("elements that are not zero in ", pairs, " of its ", group.units, " pairs of neighbours; at most ",
             group.units / 2, " pairs may have them");
}

Status ForEachGroup(const GemmProblem& problem, const auto& body) {
  const int group = ir::SparseGroupOf(ir::OperandBitsOf(problem)).elements;
  for (int64_t matrix = 0; matrix < problem.batch; ++matrix) {
    for (int64_t row = 0; row < problem.m; ++row) {
      for (int64_t k = 0; k < problem.k; k += group) LS_TRY(body(GroupPlace{matrix, row, k}));
    }
  }
  return Ok();
}

// Of the metadata of all matrices.
ir::CodePosition PositionOf(const GemmProblem& problem, const GroupPlace& place) {
  const int bits = ir::OperandBitsOf(problem);
  ir::CodePosition position = ir::PositionOfCode(bits, problem.m, place.row, place.k);
  position.byte += place.matrix * static_cast<int64_t>(ir::MetadataBlocks(bits, 1, problem.m, problem.k).Bytes());
  return position;
}

size_t MetadataBytesOf(const GemmProblem& problem) {
  return ir::MetadataBlocks(ir::OperandBitsOf(problem), problem.batch, problem.m, problem.k).Bytes();
}

}  // namespace

Result<SparseBytes> SparseBytesOf(const Problem& problem) {
  LS_ASSIGN(const GemmProblem gemm, SparseGemm(problem));
  return SparseBytes{.elements = ir::Stored(gemm, ir::OperandRole::kA).Bytes(),
                     .metadata = MetadataBytesOf(gemm),
                     .dense = static_cast<size_t>(ir::BytesOf(gemm.a, gemm.batch * gemm.m * gemm.k))};
}

Result<SparseOperand> CompressSparse(const Problem& problem, std::span<const std::byte> dense) {
  LS_ASSIGN(const GemmProblem gemm, SparseGemm(problem));
  const ElementsOfA from = DenseElements(gemm), to = StoredElements(gemm);
  LS_TRY(from.CheckSize("the dense A", dense.size()));
  SparseOperand sparse{.elements = std::vector<std::byte>(ir::Stored(gemm, ir::OperandRole::kA).Bytes()),
                       .metadata = std::vector<std::byte>(MetadataBytesOf(gemm))};
  const int bits = ir::OperandBitsOf(gemm), width = ir::BitsOf(gemm.a);
  const ir::SparseGroup group = ir::SparseGroupOf(bits);
  const auto compress = [&](const GroupPlace& at) -> Status {
    unsigned present = 0;
    for (int i = 0; i < group.elements; ++i) {
      if (IsNonZero(gemm.a, LoadElement(dense.data(), width, from.At(at.matrix, at.row, at.k + i)))) present |= 1u << i;
    }
    const uint8_t code = CodeThatKeeps(bits, present);
    if (code == 0) {
      return MakeError(ErrorCode::kInvalidArgument, Cat("A is not ", group.kept(), ":", group.elements, " sparse: ",
                                                        NameOfGroup(gemm, at), " has ", TooMany(group, present)));
    }
    const unsigned kept = ir::KeptElements(bits, code);
    int64_t stored = at.k / 2;
    for (int i = 0; i < group.elements; ++i) {
      if ((kept >> i & 1) == 0) continue;
      StoreElement(sparse.elements.data(), width, to.At(at.matrix, at.row, stored++),
                   LoadElement(dense.data(), width, from.At(at.matrix, at.row, at.k + i)));
    }
    const ir::CodePosition position = PositionOf(gemm, at);
    sparse.metadata[static_cast<size_t>(position.byte)] |= std::byte(code << position.shift);
    return Ok();
  };
  LS_TRY(ForEachGroup(gemm, compress));
  return sparse;
}

Result<std::vector<std::byte>> ExpandSparse(const Problem& problem, std::span<const std::byte> elements,
                                            std::span<const std::byte> metadata) {
  LS_ASSIGN(const GemmProblem gemm, SparseGemm(problem));
  const ElementsOfA to = DenseElements(gemm), from = StoredElements(gemm);
  LS_TRY(from.CheckSize("the stored A", elements.size()));
  if (metadata.size() != MetadataBytesOf(gemm)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat("the metadata has ", metadata.size(), " bytes, the problem needs ", MetadataBytesOf(gemm)));
  }
  const int bits = ir::OperandBitsOf(gemm), width = ir::BitsOf(gemm.a);
  const ir::SparseGroup group = ir::SparseGroupOf(bits);
  std::vector<std::byte> dense(static_cast<size_t>(ir::BytesOf(gemm.a, gemm.batch * gemm.m * gemm.k)));
  const auto expand = [&](const GroupPlace& at) -> Status {
    const ir::CodePosition position = PositionOf(gemm, at);
    const auto code = static_cast<uint8_t>(
        std::to_integer<unsigned>(metadata[static_cast<size_t>(position.byte)]) >> position.shift & 15);
    const unsigned kept = ir::KeptElements(bits, code);
    if (kept == 0)
      return MakeError(ErrorCode::kInvalidArgument,
                       Cat("the metadata of ", NameOfGroup(gemm, at), " is ", int{code}, ", which is no code"));
    int64_t stored = at.k / 2;
    for (int i = 0; i < group.elements; ++i) {
      if ((kept >> i & 1) == 0) continue;
      StoreElement(dense.data(), width, to.At(at.matrix, at.row, at.k + i),
                   LoadElement(elements.data(), width, from.At(at.matrix, at.row, stored++)));
    }
    return Ok();
  };
  LS_TRY(ForEachGroup(gemm, expand));
  return dense;
}

}  // namespace laneshift
