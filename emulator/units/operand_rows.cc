#include "emulator/units/operand_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "emulator/units/operand_vector.h"

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

// Calls visit(i) for i below `count`, eight at a time: loops of a known length become vectors at any optimisation
// level.
template <typename Visit>
inline void ForEachInEights(int count, Visit visit) {
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int j = 0; j < 8; ++j) visit(i + j);
  }
  for (; i < count; ++i) visit(i);
}

// The adder does not normalise: a subnormal counts with its format's least exponent.
int LeastExponent(ElementType type) { return 1 - base::InfoOf(FormatOf(type)).bias; }

void ToValues(ElementType type, const uint32_t* codes, int count, float* values) {
  switch (type) {
    case ElementType::kF16:
      for (int i = 0; i < count; ++i) values[i] = base::F16ToFloat(static_cast<uint16_t>(codes[i]));
      return;
    case ElementType::kBf16:
      ForEachInEights(count, [=](int i) { values[i] = std::bit_cast<float>(codes[i] << 16); });
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
  const bool with_exponents = !IsInteger(type) && detail_ == Detail::kValuesAndExponents;
  integers_.resize(IsInteger(type) ? elements : 0);
  values_.resize(IsInteger(type) ? 0 : elements);
  exponents_.resize(with_exponents ? elements * copies() : 0);
  row_ranges_.assign(with_exponents && side == Side::kA ? static_cast<size_t>((rows - 1) / kRangeRows + 1) : 0, {});
  range_ = {};
  // Rows overwrite everything but the padding.
  for (int i = 0; side == Side::kB && i < k && rows < pitch_; ++i) {
    const size_t first = At(rows, i), count = static_cast<size_t>(pitch_ - rows);
    if (!integers_.empty()) std::fill_n(&integers_[first], count, 0);
    if (!values_.empty()) std::fill_n(&values_[first], count, 0.0f);
    if (with_exponents) std::fill_n(&exponents_[first], count, kZeroExponent);
  }
}

void OperandRows::StoreIntegers(int row, const uint32_t* codes) {
  const size_t step = side_ == Side::kA ? 1 : static_cast<size_t>(pitch_);
  size_t at = At(row, 0);
  for (int i = 0; i < k_; ++i, at += step) {
    integers_[at] = type_ == ElementType::kS8 ? static_cast<int8_t>(codes[i]) : static_cast<uint8_t>(codes[i]);
  }
}

void OperandRows::Decode(int row, const uint32_t* codes, bool negate, float* values, int16_t* exponents) {
  ToValues(type_, codes, k_, values);
  const uint32_t flip = negate ? 0x80000000u : 0;
  if (exponents == nullptr) {
    if (!negate) return;
    ForEachInEights(k_, [=](int i) { values[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(values[i]) ^ flip); });
    return;
  }
  const int32_t least = LeastExponent(type_);
  int32_t greatest = kZeroExponent, smallest = -kZeroExponent;
  // Without branches, for the vectoriser.
  ForEachInEights(k_, [&](int i) {
    const uint32_t word = std::bit_cast<uint32_t>(values[i]);
    values[i] = std::bit_cast<float>(word ^ flip);
    const auto field = static_cast<int32_t>(word >> 23 & 0xff);
    const int32_t exponent = (word & 0x7fffffff) != 0 ? std::max(field - 127, least) : kZeroExponent;
    greatest = std::max(greatest, exponent);
    smallest = std::min(smallest, exponent == kZeroExponent ? -kZeroExponent : exponent);
    exponents[i] = static_cast<int16_t>(exponent);
  });
  const Range own = {static_cast<int16_t>(greatest), static_cast<int16_t>(smallest)};
  if (!row_ranges_.empty()) row_ranges_[static_cast<size_t>(row / kRangeRows)].Include(own);
  range_.Include(own);
}

template <typename CodesOf>
void OperandRows::StoreRows(CodesOf codes_of, bool negate) {
  const bool with_exponents = !exponents_.empty();
  if (IsInteger(type_)) {
    for (int row = 0; row < rows_; ++row) StoreIntegers(row, codes_of(row));
    return;
  }
  // A few rows at a time, so that the transposition writes whole runs of them.
  constexpr int kBlock = 16;
  std::array<std::array<float, kMaxK>, kBlock> values;
  std::array<std::array<int16_t, kMaxK>, kBlock> exponents;
  if (side_ == Side::kA) {
    for (int row = 0; row < rows_; ++row) {
      const size_t at = At(row, 0);
      Decode(row, codes_of(row), negate, &values_[at], with_exponents ? exponents[0].data() : nullptr);
      for (size_t i = 0; with_exponents && i < static_cast<size_t>(k_); ++i) {
        exponents_[2 * (at + i)] = exponents_[2 * (at + i) + 1] = exponents[0][i];
      }
    }
    return;
  }
  const auto transpose = [&](const auto& block, int first, int count, auto* to) {
    to += first;
    for (int k = 0; k < k_; ++k, to += pitch_) {
      if (count == kBlock) {
        for (size_t r = 0; r < kBlock; ++r) to[r] = block[r][static_cast<size_t>(k)];
      } else {
        for (int r = 0; r < count; ++r) to[r] = block[static_cast<size_t>(r)][static_cast<size_t>(k)];
      }
    }
  };
  for (int first = 0; first < rows_; first += kBlock) {
    const int count = std::min(kBlock, rows_ - first);
    for (int r = 0; r < count; ++r) {
      const auto at = static_cast<size_t>(r);
      Decode(first + r, codes_of(first + r), negate, values[at].data(),
             with_exponents ? exponents[at].data() : nullptr);
    }
    transpose(values, first, count, values_.data());
    if (with_exponents) transpose(exponents, first, count, exponents_.data());
  }
}

void OperandRows::Load(Side side, ElementType type, Packing packing, int rows, int k, const uint8_t* bytes,
                       size_t row_bytes, bool negate) {
  Prepare(side, type, rows, k);
  if (k % 4 == 0 && LoadsInVectors(type, packing)) {
    const PackedRows from = {type, rows, k, bytes, row_bytes, negate, LeastExponent(type)};
    const VectorLoads& loads = SelectVectorLoads();
    int16_t* exponents = exponents_.empty() ? nullptr : exponents_.data();
    if (side == Side::kA) {
      range_ = loads.rows(from, values_.data(), exponents, row_ranges_.data());
    } else {
      range_ = loads.columns(from, static_cast<size_t>(pitch_), values_.data(), exponents);
    }
    return;
  }
  std::array<uint32_t, kMaxK> codes;
  const auto codes_of = [&](int row) {
    UnpackElements(type, packing, bytes + static_cast<size_t>(row) * row_bytes, k, codes.data());
    return codes.data();
  };
  StoreRows(codes_of, negate);
}

void OperandRows::LoadCodes(Side side, ElementType type, int rows, int k, const uint32_t* codes, bool negate) {
  Prepare(side, type, rows, k);
  StoreRows([&](int row) { return codes + static_cast<size_t>(row) * static_cast<size_t>(k); }, negate);
}

void OperandRows::LoadScales(ScaleType type, int factors, const uint8_t* bytes) {
  LS_CHECK(factors > 0 && k_ % factors == 0, "scale factors ", factors, " for K ", k_);
  scale_type_ = type;
  factors_ = factors;
  const size_t count = static_cast<size_t>(rows_) * static_cast<size_t>(factors);
  scales_.assign(count + kPadding, 127);
  std::copy_n(bytes, count, scales_.begin());
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
