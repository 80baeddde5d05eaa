#include "emulator/units/operand_vector.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "emulator/units/operand_rows.h"

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

void ExpectSame(const OperandRows::Range& range, const OperandRows::Range& wanted, const std::string& where) {
  EXPECT_EQ(range.greatest, wanted.greatest) << where;
  EXPECT_EQ(range.least, wanted.least) << where;
}

constexpr int16_t kZero = OperandRows::kZeroExponent;

struct Operand {
  ElementType type;
  int rows, k;
  bool negate;
};

Packing PackingOf(ElementType type) { return type == ElementType::kE2m1 ? Packing::kNibbles : Packing::kPlain; }

void Compare(const Operand& operand, std::mt19937& random) {
  const auto row_bytes = static_cast<size_t>(operand.k * BitsOf(operand.type) / 8) + 16;
  std::vector<uint8_t> packed(row_bytes * static_cast<size_t>(operand.rows));
  for (uint8_t& byte : packed) byte = static_cast<uint8_t>(random());
  std::vector<uint32_t> codes(static_cast<size_t>(operand.k));
  const auto pitch = static_cast<size_t>((operand.rows + 31) / 32 * 32);
  const int least = 1 - base::InfoOf(FormatOf(operand.type)).bias;
  const PackedRows from = {operand.type, operand.rows, operand.k, packed.data(), row_bytes, operand.negate, least};
  for (const VectorLoads* loads : RunnableVectorLoads()) {
    std::vector<float> rows(static_cast<size_t>(operand.rows * operand.k), -1);
    std::vector<float> columns(pitch * static_cast<size_t>(operand.k), 0);
    std::vector<int16_t> row_exponents(2 * rows.size(), -1), column_exponents(columns.size(), kZero);
    std::vector<OperandRows::Range> ranges(rows.size());
    loads->rows(from, rows.data(), nullptr, nullptr);
    loads->columns(from, pitch, columns.data(), nullptr);
    const std::vector<float> separate_rows = std::exchange(rows, std::vector<float>(rows.size(), -1));
    const std::vector<float> separate_columns = columns;
    const OperandRows::Range most = loads->rows(from, rows.data(), row_exponents.data(), ranges.data());
    ExpectSame(loads->columns(from, pitch, columns.data(), column_exponents.data()), most, loads->name);
    EXPECT_EQ(std::memcmp(rows.data(), separate_rows.data(), rows.size() * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(columns.data(), separate_columns.data(), columns.size() * sizeof(float)), 0);
    OperandRows::Range all, of_rows;
    for (int row = 0; row < operand.rows; ++row) {
      UnpackElements(operand.type, PackingOf(operand.type), packed.data() + static_cast<size_t>(row) * row_bytes,
                     operand.k, codes.data());
      if (row % OperandRows::kRangeRows == 0) of_rows = {};
      for (int i = 0; i < operand.k; ++i) {
        const float value = base::ToFloat(FormatOf(operand.type), codes[static_cast<size_t>(i)]);
        const float wanted = operand.negate ? -value : value;
        const std::string where = std::string(loads->name) + ' ' + std::string(NameOf(operand.type)) + " row " +
                                  std::to_string(row) + " element " + std::to_string(i);
        ExpectSame(rows[static_cast<size_t>(row * operand.k + i)], wanted, where);
        const size_t column = static_cast<size_t>(i) * pitch + static_cast<size_t>(row);
        ExpectSame(columns[column], wanted, where + " of columns");
        const int exponent = !std::isfinite(value) ? 128 : value == 0 ? kZero : std::max(std::ilogb(value), least);
        const auto pair = 2 * static_cast<size_t>(row * operand.k + i);
        EXPECT_EQ(row_exponents[pair], exponent) << where;
        EXPECT_EQ(row_exponents[pair + 1], exponent) << where;
        EXPECT_EQ(column_exponents[column], exponent) << where;
        if (value != 0) of_rows.Include({static_cast<int16_t>(exponent), static_cast<int16_t>(exponent)});
      }
      if (row % OperandRows::kRangeRows == OperandRows::kRangeRows - 1 || row == operand.rows - 1) {
        ExpectSame(ranges[static_cast<size_t>(row / OperandRows::kRangeRows)], of_rows, loads->name);
        all.Include(of_rows);
      }
    }
    ExpectSame(most, all, loads->name);
    for (size_t row = static_cast<size_t>(operand.rows); row < pitch; ++row) {
      for (size_t i = 0; i < static_cast<size_t>(operand.k); ++i) {
        EXPECT_EQ(columns[i * pitch + row], 0);
        EXPECT_EQ(column_exponents[i * pitch + row], kZero);
      }
    }
  }
}

TEST(OperandVector, EveryInstructionSetGivesTheValuesOfTheCodes) {
  std::mt19937 random(5);
  int types = 0;
  for (int t = 0; t <= static_cast<int>(ElementType::kU8); ++t) {
    const auto type = static_cast<ElementType>(t);
    if (!LoadsInVectors(type, PackingOf(type))) continue;
    ++types;
    for (const int k : {4, 8, 16, 32, 64}) {
      for (const int rows : {1, 8, 14, 40, 64}) Compare({type, rows, k, (rows + k) % 8 == 0}, random);
    }
  }
  EXPECT_EQ(types, 6);
}

}  // namespace
}  // namespace laneshift::emulator
