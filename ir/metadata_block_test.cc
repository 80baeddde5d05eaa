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
// strides in elements of K for each digit of row and K, and as many elements as bits (16 and 8 bits) or half as many
// (tf32); blocks of all rows before the next ones along K.
int CodeByLayoutE(DataType type, const std::vector<std::byte>& metadata, int64_t rows, int64_t row, int64_t k) {
  const int64_t depth = type == DataType::kTf32 ? 64 : 128;
  const int64_t block = k / depth * ((rows + 127) / 128) + row / 128, r = row % 128, q = k % depth;
  int64_t element = 0, bits = 1;
  switch (ir::BitsOf(type)) {
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
  const DataType a = std::get<GemmProblem>(problem).a;
  const int64_t m = 200, k = 264, bytes = ir::BytesOf(a, 1);
  const int group = a == DataType::kTf32 ? 2 : 4;
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
      const int code = CodeByLayoutE(a, sparse.metadata, m, row, q);
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
  EXPECT_NE(message("gemm m=8 n=8 k=32 a=e4m3 scale=mx sparse=a").find("sparse=a is not supported with scale=mx"),
            std::string::npos);
}

}  // namespace
}  // namespace laneshift
