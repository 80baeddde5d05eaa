#include "ir/metadata_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ir/element_type.h"
#include "laneshift/sparsity.h"

namespace laneshift {
namespace {

Problem Parsed(const std::string& text) { return ParseProblem(text).value(); }

// The code of element k of a row in one matrix, by CUTLASS's layouts of tensor E for sm_100, written as they are there:
// strides in elements of K for each digit of row and K, and as many elements as bits (16 and 8 bits), half as many
// (tf32) or as half of them (4 bits); blocks of all rows before the next ones along K.
int CodeByLayoutE(int operand_bits, const std::vector<std::byte>& metadata, int64_t rows, int64_t row, int64_t k) {
  const int64_t depth = operand_bits == 32 ? 64 : operand_bits == 4 ? 256 : 128;
  const int64_t block = k / depth * ((rows + 127) / 128) + row / 128, r = row % 128, q = k % depth;
  int64_t element = 0, bits = 1;
  switch (operand_bits) {
    case 4:  // (128, 256) : (256, 1), in pairs
      element = r * 128 + q / 2;
      break;
    case 8:  // (128, 128) : (128, 1)
      element = r * 128 + q;
      break;
    case 16:  // ((8, 2, 8), (16, 2, 4)) : ((128, 16, 2048), (1, 1024, 32))
      element = r % 8 * 128 + r / 8 % 2 * 16 + r / 16 * 2048 + q % 16 + q / 16 % 2 * 1024 + q / 32 * 32;
      break;
    default:  // ((8, 2, 8), (8, 2, 4)) : ((64, 8, 1024), (1, 512, 16))
      element = r % 8 * 64 + r / 8 % 2 * 8 + r / 16 * 1024 + q % 8 + q / 8 % 2 * 512 + q / 16 * 16;
      bits = 2;
  }
  const int64_t bit = block * 2048 * 8 + element * bits;
  return static_cast<int>(std::to_integer<unsigned>(metadata[static_cast<size_t>(bit / 8)]) >> (bit % 8)) & 15;
}

class Sparsity2To4 : public testing::TestWithParam<const char*> {};

// A random A with at most half of each group, its compressed form, read by the layout above.
TEST_P(Sparsity2To4, MetadataHasTheLayoutOfCutlass) {
  const std::string type = GetParam();
  const Problem problem = Parsed("gemm m=200 n=8 k=264 sparse=a a=" + type);
  const GemmProblem& gemm = std::get<GemmProblem>(problem);
  const int64_t m = 200, k = 264, bytes = ir::BytesOf(gemm.a, 1);
  const int group = gemm.a == DataType::kTf32 ? 2 : 4;
  std::mt19937 random(7);
  std::vector<std::byte> dense(static_cast<size_t>(m * k * bytes));
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t q = 0; q < k; q += group) {
      for (int kept = 0; kept < group / 2; ++kept) {
        const auto i = static_cast<int64_t>(random() % static_cast<unsigned>(group));
        dense[static_cast<size_t>((row * k + q + i) * bytes + bytes - 1)] = std::byte(1 + random() % 100);
      }
    }
  }
  const SparseOperand sparse = CompressSparse(problem, dense).value();
  EXPECT_EQ(sparse.elements.size(), dense.size() / 2);
  EXPECT_EQ(sparse.metadata.size(), SparseBytesOf(problem)->metadata);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t q = 0; q < k; q += group) {
      const int code = CodeByLayoutE(ir::OperandBitsOf(gemm), sparse.metadata, m, row, q);
      std::vector<std::byte> expanded(static_cast<size_t>(group * bytes));
      const int indices[] = {group == 2 ? (code & 3) / 2 : code & 3, code >> 2};
      for (int i = 0; i < group / 2; ++i) {
        std::memcpy(expanded.data() + indices[i] * bytes, sparse.elements.data() + (row * k / 2 + q / 2 + i) * bytes,
                    static_cast<size_t>(bytes));
      }
      ASSERT_EQ(std::memcmp(expanded.data(), dense.data() + (row * k + q) * bytes, expanded.size()), 0)
          << "row " << row << " k " << q << " code " << code;
    }
  }
  EXPECT_EQ(ExpandSparse(problem, sparse.elements, sparse.metadata).value(), dense);
}

INSTANTIATE_TEST_SUITE_P(Types, Sparsity2To4, testing::Values("bf16", "f16", "tf32", "e4m3", "s8"),
                         [](const auto& type) { return std::string(type.param); });

// Pairs of neighbours: of each eight elements two pairs are stored, as two bytes.
TEST(Sparsity, PairsOfFourBitsAreStoredTogether) {
  const Problem problem = Parsed("gemm m=200 n=8 k=264 a=e2m1 scale=nv sparse=a");
  const GemmProblem& gemm = std::get<GemmProblem>(problem);
  EXPECT_EQ(ir::OperandBitsOf(gemm), 4);
  const int64_t m = 200, k = 264;
  std::mt19937 random(7);
  std::vector<std::byte> dense(static_cast<size_t>(m * k / 2));
  for (size_t chunk = 0; chunk < dense.size(); chunk += 4) {
    for (int kept = 0; kept < 2; ++kept) dense[chunk + random() % 4] = std::byte(1 + random() % 7 + random() % 7 * 16);
  }
  const SparseOperand sparse = CompressSparse(problem, dense).value();
  EXPECT_EQ(sparse.elements.size(), dense.size() / 2);
  EXPECT_EQ(sparse.metadata.size(), size_t{2} * 2 * 2048) << "two blocks of 256 elements, of 128 rows each";
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t q = 0; q < k; q += 8) {
      const int code = CodeByLayoutE(4, sparse.metadata, m, row, q);
      std::vector<std::byte> expanded(4);
      expanded[static_cast<size_t>(code & 3)] = sparse.elements[static_cast<size_t>(row * k + q) / 4];
      expanded[static_cast<size_t>(code >> 2)] = sparse.elements[static_cast<size_t>(row * k + q) / 4 + 1];
      ASSERT_EQ(std::memcmp(expanded.data(), dense.data() + (row * k + q) / 2, 4), 0) << "row " << row << " k " << q;
    }
  }
  EXPECT_EQ(ExpandSparse(problem, sparse.elements, sparse.metadata).value(), dense);
  for (size_t i = 0; i < 4; ++i) dense[i] = std::byte(i < 3 ? 0x10 : 0);
  EXPECT_EQ(CompressSparse(problem, dense).error().message,
            "A is not 4:8 sparse: row 0, group 0 (k=0 to 7) has elements that are not zero in 3 of its 4 pairs of "
            "neighbours; at most 2 pairs may have them");
}

// In kinds that pad e2m1 it is sparse by elements, which are packed in memory nevertheless; so are those of 6 bits.
TEST(Sparsity, PackedElementsOfFourAndSixBitsAreCompressedOneByOne) {
  const Problem four = Parsed("gemm m=1 n=8 k=8 a=e2m1 b=e4m3 sparse=a");
  const std::byte dense[] = {std::byte{0x20}, std::byte{0x03}, std::byte{0x00}, std::byte{0x54}};
  const SparseOperand sparse = CompressSparse(four, dense).value();
  const std::byte stored[] = {std::byte{0x32}, std::byte{0x54}};
  ASSERT_EQ(sparse.elements.size(), 2u);
  EXPECT_EQ(std::memcmp(sparse.elements.data(), stored, 2), 0) << "elements 1 and 2, and 6 and 7";
  EXPECT_EQ(sparse.metadata[0], std::byte{0xe9});
  const Problem six = Parsed("gemm m=1 n=8 k=8 a=e3m2 sparse=a");
  // Elements 0 and 5 are 0x3f: bits 0 to 5, and 30 to 35.
  const std::byte wide[] = {std::byte{0x3f}, std::byte{0},    std::byte{0},
                            std::byte{0xc0}, std::byte{0x0f}, std::byte{0}};
  const SparseOperand packed = CompressSparse(six, wide).value();
  // Codes that keep elements 0 and 1 of each group: stored elements 0 and 3 are not zero.
  const std::byte kept[] = {std::byte{0x3f}, std::byte{0}, std::byte{0xfc}};
  ASSERT_EQ(packed.elements.size(), 3u);
  EXPECT_EQ(std::memcmp(packed.elements.data(), kept, 3), 0);
  EXPECT_EQ(packed.metadata[0], std::byte{0x44});
  EXPECT_EQ(ExpandSparse(six, packed.elements, packed.metadata).value(),
            std::vector<std::byte>(std::begin(wide), std::end(wide)));
}

TEST(Sparsity, ColumnsOfAAndMatricesOfABatchAreCompressedInPlace) {
  const Problem problem = Parsed("gemm m=3 n=8 k=8 batch=2 a=s8 a_major=m lda=5 sparse=a");
  std::vector<std::byte> dense(2 * 8 * 3);
  for (int matrix = 0; matrix < 2; ++matrix) {
    for (int row = 0; row < 3; ++row)
      dense[static_cast<size_t>(matrix * 24 + 6 * 3 + row)] = std::byte(10 * matrix + row + 1);
  }
  const SparseOperand sparse = CompressSparse(problem, dense).value();
  ASSERT_EQ(sparse.elements.size(), 4u * 5 + 3 * 5 + 3);
  EXPECT_EQ(sparse.elements[3 * 5 + 1], std::byte{2}) << "the second element of the group (0, 2): stored row 3";
  EXPECT_EQ(sparse.elements[20 + 3 * 5 + 2], std::byte{13});
  EXPECT_EQ(ExpandSparse(problem, sparse.elements, sparse.metadata).value(), dense);
}

TEST(Sparsity, ErrorsNameTheFirstRowAndGroup) {
  const Problem problem = Parsed("gemm m=4 n=8 k=16 a=s8 sparse=a");
  std::vector<std::byte> dense(4 * 16);
  for (int i = 0; i < 3; ++i) dense[static_cast<size_t>(2 * 16 + 8 + i)] = std::byte{1};
  const auto refused = CompressSparse(problem, dense);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "A is not 2:4 sparse: row 2, group 2 (k=8 to 11) has 3 elements that are not zero; at most 2 may be");
  EXPECT_EQ(CompressSparse(problem, std::span(dense).first(10)).error().message,
            "the dense A has 10 bytes, the problem needs 64");
  dense[2 * 16 + 8] = std::byte{0};
  SparseOperand sparse = CompressSparse(problem, dense).value();
  sparse.metadata[16 * 3] = std::byte{0x45};
  EXPECT_EQ(ExpandSparse(problem, sparse.elements, sparse.metadata).error().message,
            "the metadata of row 3, group 0 (k=0 to 3) is 5, which is no code");
  EXPECT_FALSE(CompressSparse(Parsed("gemm m=4 n=8 k=16"), dense));
}

TEST(Sparsity, NegativeZerosAreZeros) {
  const Problem problem = Parsed("gemm m=1 n=8 k=4 a=bf16 sparse=a");
  const uint16_t dense[] = {0x8000, 0x3f80, 0x8000, 0x4000};
  const SparseOperand sparse = CompressSparse(problem, std::as_bytes(std::span(dense))).value();
  const uint16_t stored[] = {0x3f80, 0x4000};
  EXPECT_EQ(std::memcmp(sparse.elements.data(), stored, sizeof stored), 0);
  EXPECT_EQ(sparse.metadata[0], std::byte{0xd});
}

TEST(Sparsity, ProblemsPrintAndRefuse) {
  const std::string text = "gemm m=256 n=128 k=512 a=bf16 b=bf16 d=bf16 sparse=a";
  EXPECT_EQ(PrintProblem(Parsed(text)), text);
  EXPECT_EQ(std::get<GemmProblem>(Parsed(text)).lda, 256) << "stored elements";
  const auto message = [](const std::string& problem) { return ParseProblem(problem).error().message; };
  EXPECT_NE(message("gemm m=8 n=8 k=30 sparse=a").find("k=30 is not whole groups of 4"), std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=31 a=tf32 sparse=a").find("pad k with zeros to 32"), std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=32 sparse=b").find("only the first operand"), std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=32 a=e4m3 scale=block sparse=a").find("not supported with scale=block"),
            std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=36 a=e2m1 scale=mx sparse=a lda=32 ldb=64").find("k=36 is not whole groups of 8"),
            std::string::npos);
}

// Of each code, the lane and the four bits of the register that wgmma.mma_async.sp reads it from (PTX ISA, "Sparse
// matrix storage"), against where the lane's word is in the layout of memory.
TEST(MetadataRegisters, LanesHaveTheWordsThatInstructionsRead) {
  for (const int bits : {8, 16, 32}) {
    const int group = ir::SparseGroupOf(bits).elements, depth = ir::MetadataBlock::Depth(bits);
    const int groups_of_instruction = bits == 8 ? 16 : 8;
    for (const int tile_k : {depth / 2, depth, 2 * depth}) {
      if (!ir::MetadataRegisters::Holds(bits, tile_k)) continue;
      const auto registers = ir::MetadataRegisters::Of(bits, tile_k);
      for (int k = 0; k < 2 * depth; k += group) {
        const int number = k / tile_k, of_tile = k % tile_k / group;
        const auto [word, selector] = registers.SourceOf(of_tile / groups_of_instruction);
        const int code = of_tile % groups_of_instruction;
        for (int row = 0; row < 16; ++row) {
          const int low = row / 8;
          const int lane = row % 8 * 4 + (bits == 8 ? 2 * (code / 8) + low : 2 * selector + code / 4);
          const int nibble = bits == 8 ? code % 8 : 4 * low + code % 4;
          const int line = lane % 2 * 8 + lane / 4;
          const int first = lane / 2 % 2 * registers.upper + (registers.half ? number % 2 * registers.kHalfWords : 0);
          const int block = registers.half ? number / 2 : number * registers.blocks + word / registers.words;
          const int word_of_line = first + word % registers.words * registers.step;
          const ir::CodePosition position = ir::PositionOfCode(bits, ir::MetadataBlock::kRows, row, k);
          EXPECT_EQ(position.byte, block * ir::MetadataBlock::kBytes + line * 16 + word_of_line * 4 + nibble / 2)
              << bits << " bits, tile k=" << tile_k << ", row " << row << ", k=" << k;
          EXPECT_EQ(position.shift, nibble % 2 * 4) << bits << " bits, row " << row << ", k=" << k;
        }
      }
    }
  }
}

TEST(MetadataRegisters, HaveWholeBlocksOrHalfOfOne) {
  for (const int bits : {8, 16, 32}) {
    const int depth = ir::MetadataBlock::Depth(bits);
    EXPECT_EQ(ir::MetadataRegisters::Holds(bits, depth / 2), bits > 8);
    EXPECT_FALSE(ir::MetadataRegisters::Holds(bits, depth / 4));
    EXPECT_FALSE(ir::MetadataRegisters::Holds(bits, depth * 3 / 2));
    EXPECT_TRUE(ir::MetadataRegisters::Holds(bits, 2 * depth));
  }
}

}  // namespace
}  // namespace laneshift
