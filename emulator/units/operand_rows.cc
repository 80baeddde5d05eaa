#include "emulator/units/operand_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace laneshift::emulator {
namespace {

// Values of every code of a format of at most 8 bits.
std::array<float, 256> TableOf(ElementType type) {
  std::array<float, 256> table{};
  const base::FloatFormat format = FormatOf(type);
  const base::FloatFormatInfo& info = base::InfoOf(format);
  const uint32_t codes = 2u << (info.exponent_bits + info.mantissa_bits);
  for (uint32_t code = 0; code < 256; ++code) table[code] = base::ToFloat(format, code % codes);
  return table;
}

const std::array<float, 256>& SmallValues(ElementType type) {
  static const std::array<std::array<float, 256>, 5> kTables = {
      TableOf(ElementType::kE4m3), TableOf(ElementType::kE5m2), TableOf(ElementType::kE2m3),
      TableOf(ElementType::kE3m2), TableOf(ElementType::kE2m1)};
  return kTables[static_cast<size_t>(type) - static_cast<size_t>(ElementType::kE4m3)];
}

void ToValues(ElementType type, const uint32_t* codes, int count, float* values) {
  switch (type) {
    case ElementType::kF16:
      for (int i = 0; i < count; ++i) values[i] = base::F16ToFloat(static_cast<uint16_t>(codes[i]));
      return;
    case ElementType::kBf16:
      for (int i = 0; i < count; ++i) values[i] = base::Bf16ToFloat(static_cast<uint16_t>(codes[i]));
      return;
    case ElementType::kTf32:
      for (int i = 0; i < count; ++i) values[i] = base::TruncateTf32(std::bit_cast<float>(codes[i]));
      return;
    case ElementType::kE4m3:
    case ElementType::kE5m2:
    case ElementType::kE2m3:
    case ElementType::kE3m2:
    case ElementType::kE2m1: {
      const std::array<float, 256>& table = SmallValues(type);
      for (int i = 0; i < count; ++i) values[i] = table[codes[i] & 255];
      return;
    }
    case ElementType::kS8:
    case ElementType::kU8:
      LS_CHECK(false, "integers have no float values");
  }
}

}  // namespace

void OperandRows::Prepare(Side side, ElementType type, int rows, int k) {
  LS_CHECK(rows > 0 && k > 0 && k <= kMaxK, "operand of ", rows, " rows, K ", k);
  side_ = side;
  type_ = type;
  rows_ = rows;
  k_ = k;
  pitch_ = side == Side::kA ? k : (rows + kPadding - 1) / kPadding * kPadding;
  factors_ = 0;
  const size_t elements = static_cast<size_t>(side == Side::kA ? rows : k) * static_cast<size_t>(pitch_);
  if (IsInteger(type)) {
    integers_.assign(elements, 0);
    values_.clear();
    powers_.clear();
  } else {
    values_.assign(elements, 0.0f);
    powers_.assign(elements, 0.0f);
    integers_.clear();
  }
  facts_.assign(static_cast<size_t>(rows), RowFacts{});
  all_ = RowFacts{};
}

void OperandRows::StoreRow(int row, const uint32_t* codes, bool negate) {
  const size_t step = side_ == Side::kA ? 1 : static_cast<size_t>(pitch_);
  size_t at = At(row, 0);
  if (IsInteger(type_)) {
    for (int i = 0; i < k_; ++i, at += step) {
      integers_[at] = type_ == ElementType::kS8 ? static_cast<int8_t>(codes[i]) : static_cast<uint8_t>(codes[i]);
    }
    return;
  }
  std::array<float, kMaxK> values, powers;
  ToValues(type_, codes, k_, values.data());
  const base::FloatFormatInfo& info = base::InfoOf(FormatOf(type_));
  // The adder does not normalise: a subnormal counts with its format's least exponent.
  const int32_t least_power = (1 - info.bias + 127) << 23;
  const uint32_t flip = negate ? 0x80000000u : 0;
  int32_t highest = 0, lowest = 0xff << 23;
  for (int i = 0; i < k_; ++i) {  // without branches, for the vectoriser; powers are positive, so integers order them
    const auto at_i = static_cast<size_t>(i);
    const uint32_t word = std::bit_cast<uint32_t>(values[at_i]);
    const int32_t nonzero = (word & 0x7fffffff) != 0 ? -1 : 0;
    const int32_t power = std::max(static_cast<int32_t>(word & 0x7f800000), least_power) & nonzero;
    highest = std::max(highest, power);
    lowest = std::min(lowest, power | (~nonzero & (0xff << 23)));
    values[at_i] = std::bit_cast<float>(word ^ flip);
    powers[at_i] = std::bit_cast<float>(power);
  }
  for (size_t i = 0; i < static_cast<size_t>(k_); ++i, at += step) {
    values_[at] = values[i];
    powers_[at] = powers[i];
  }
  RowFacts& facts = facts_[static_cast<size_t>(row)];
  if (highest == 0) return;
  facts.zero = false;
  facts.special = highest == 0x7f800000;
  facts.greatest = static_cast<int16_t>((highest >> 23) - 127);
  facts.least = static_cast<int16_t>((lowest >> 23) - 127);
  all_.zero = false;
  all_.special |= facts.special;
  all_.greatest = std::max(all_.greatest, facts.greatest);
  all_.least = std::min(all_.least, facts.least);
}

void OperandRows::Load(Side side, ElementType type, Packing packing, int rows, int k, const uint8_t* bytes,
                       size_t row_bytes, bool negate) {
  Prepare(side, type, rows, k);
  std::array<uint32_t, kMaxK> codes;
  for (int row = 0; row < rows; ++row) {
    UnpackElements(type, packing, bytes + static_cast<size_t>(row) * row_bytes, k, codes.data());
    StoreRow(row, codes.data(), negate);
  }
}

void OperandRows::LoadCodes(Side side, ElementType type, int rows, int k, const uint32_t* codes, bool negate) {
  Prepare(side, type, rows, k);
  for (int row = 0; row < rows; ++row) StoreRow(row, codes + static_cast<size_t>(row) * static_cast<size_t>(k), negate);
}

void OperandRows::LoadScales(ScaleType type, int factors, const uint8_t* bytes) {
  LS_CHECK(factors > 0 && k_ % factors == 0, "scale factors ", factors, " for K ", k_);
  scale_type_ = type;
  factors_ = factors;
  scales_.assign(bytes, bytes + static_cast<size_t>(rows_) * static_cast<size_t>(factors));
}

void OperandRows::FoldScales() {
  const int per_factor = k_ / std::max(factors_, 1);
  const auto format = scale_type_ == ScaleType::kUe8m0 ? base::FloatFormat::kUe8m0 : base::FloatFormat::kUe4m3;
  for (int row = 0; row < rows_ && factors_ != 0; ++row) {
    for (int k = 0; k < k_; ++k) values_[At(row, k)] *= base::ToFloat(format, scale(row, k / per_factor));
  }
  factors_ = 0;
}

}  // namespace laneshift::emulator
