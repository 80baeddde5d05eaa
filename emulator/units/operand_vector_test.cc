#include "emulator/units/operand_vector.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

namespace laneshift::emulator {
namespace {

// Equal bits, or both NaN.
void ExpectSame(float value, float wanted, const std::string& where) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(value)) << where;
  } else {
    EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(wanted)) << where;
  }
}

struct Operand {
  ElementType type;
  int rows, k;
  bool negate;
};

void Compare(const Operand& operand, std::mt19937& random) {
  const int bytes = BitsOf(operand.type) / 8;
  const auto row_bytes = static_cast<size_t>(operand.k * bytes) + 16;
  std::vector<uint8_t> packed(row_bytes * static_cast<size_t>(operand.rows));
  for (uint8_t& byte : packed) byte = static_cast<uint8_t>(random());
  std::array<float, 256> table{};
  for (uint32_t code = 0; code < 256 && bytes == 1; ++code) table[code] = base::ToFloat(FormatOf(operand.type), code);
  std::vector<uint32_t> codes(static_cast<size_t>(operand.k));
  const auto pitch = static_cast<size_t>((operand.rows + 31) / 32 * 32);
  const PackedRows from = {operand.type, operand.rows,   operand.k,   packed.data(),
                           row_bytes,    operand.negate, table.data()};
  for (const VectorLoads* loads : RunnableVectorLoads()) {
    std::vector<float> rows(static_cast<size_t>(operand.rows * operand.k), -1);
    std::vector<float> columns(pitch * static_cast<size_t>(operand.k), 0);
    loads->rows(from, rows.data());
    loads->columns(from, pitch, columns.data());
    for (int row = 0; row < operand.rows; ++row) {
      UnpackElements(operand.type, Packing::kPlain, packed.data() + static_cast<size_t>(row) * row_bytes, operand.k,
                     codes.data());
      for (int i = 0; i < operand.k; ++i) {
        const float value = base::ToFloat(FormatOf(operand.type), codes[static_cast<size_t>(i)]);
        const float wanted = operand.negate ? -value : value;
        const std::string where = std::string(loads->name) + ' ' + std::string(NameOf(operand.type)) + " row " +
                                  std::to_string(row) + " element " + std::to_string(i);
        ExpectSame(rows[static_cast<size_t>(row * operand.k + i)], wanted, where);
        ExpectSame(columns[static_cast<size_t>(i) * pitch + static_cast<size_t>(row)], wanted, where + " of columns");
      }
    }
    for (size_t row = static_cast<size_t>(operand.rows); row < pitch; ++row) {
      for (size_t i = 0; i < static_cast<size_t>(operand.k); ++i) EXPECT_EQ(columns[i * pitch + row], 0);
    }
  }
}

TEST(OperandVector, EveryInstructionSetGivesTheValuesOfTheCodes) {
  std::mt19937 random(5);
  int types = 0;
  for (int t = 0; t <= static_cast<int>(ElementType::kU8); ++t) {
    const auto type = static_cast<ElementType>(t);
    if (!LoadsInVectors(type)) continue;
    ++types;
    for (const int k : {4, 8, 16, 32, 64}) {
      for (const int rows : {1, 8, 40, 64}) Compare({type, rows, k, (rows + k) % 8 == 0}, random);
    }
  }
  EXPECT_EQ(types, 5);
}

}  // namespace
}  // namespace laneshift::emulator
