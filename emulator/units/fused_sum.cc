#include "emulator/units/fused_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "base/small_float.h"
#include "emulator/units/fused_sum_vector.h"

namespace laneshift::emulator {
namespace {

// (-1)^negative * significand * 2^(exponent - fraction); `exponent` is the one that the adder aligns by.
// No initialisers: a sum has room for 129 of them and uses few.
struct Term {
  bool negative;
  uint64_t significand;
  int fraction, exponent;
};

constexpr uint32_t kNan32 = 0x7fffffff, kInfinity32 = 0x7f800000;
constexpr uint32_t kNan16 = 0x7fff, kInfinity16 = 0x7c00;

// The terms of one sum, and what infinities and NaNs make of it.
class Terms {
 public:
  void Add(Term term) {
    if (term.significand != 0) terms_[static_cast<size_t>(count_++)] = term;
  }
  void AddNan() { nan_ = true; }
  void AddInfinity(bool negative) { (negative ? minus_ : plus_) = true; }

  // The word of the sum.
  uint32_t Sum(AccumulatorType d, const AdderRule& rule) const {
    const bool half = d == AccumulatorType::kF16;
    if (nan_ || (plus_ && minus_)) return half ? kNan16 : kNan32;
    if (plus_) return half ? kInfinity16 : kInfinity32;
    if (minus_) return half ? kInfinity16 | 0x8000 : kInfinity32 | 0x80000000u;
    int top = rule.floor;
    for (int i = 0; i < count_; ++i) top = std::max(top, terms_[static_cast<size_t>(i)].exponent);
    int64_t total = 0;
    for (int i = 0; i < count_; ++i) {
      const Term& t = terms_[static_cast<size_t>(i)];
      const int right = t.fraction - rule.keep + (top - t.exponent);
      const uint64_t cut = right <= 0 ? t.significand << -right : right > 63 ? 0 : t.significand >> right;
      total += t.negative ? -static_cast<int64_t>(cut) : static_cast<int64_t>(cut);
    }
    return half ? RoundToF16(total, top - rule.keep) : CutToF32(total, top - rule.keep, rule.out);
  }

 private:
  // total * 2^unit toward zero, to `out` fraction bits.
  static uint32_t CutToF32(int64_t total, int unit, int out) {
    const auto magnitude = static_cast<uint64_t>(std::llabs(total));
    const int exponent = std::bit_width(magnitude) - 1 + unit;
    if (magnitude == 0) return 0;
    const uint32_t sign = total < 0 ? 0x80000000u : 0;
    if (exponent > 127) return sign | kInfinity32;
    const int least = std::max(exponent, -126);
    const int right = least - out - unit;
    const uint64_t kept = right <= 0 ? magnitude << -right : right > 63 ? 0 : magnitude >> right;
    // A normal significand carries its leading one into the exponent field, hence the field of `least` minus one.
    const uint32_t word = (static_cast<uint32_t>(least + 126) << 23) + (static_cast<uint32_t>(kept) << (23 - out));
    return word == 0 ? 0 : sign | word;
  }

  static uint32_t RoundToF16(int64_t total, int unit) {
    const auto magnitude = static_cast<uint64_t>(std::llabs(total));
    if (magnitude == 0) return 0;
    const uint32_t sign = total < 0 ? 0x8000 : 0;
    const int exponent = std::bit_width(magnitude) - 1 + unit;
    if (exponent > 15) return sign | kInfinity16;
    const int least = std::max(exponent, -14);
    const int right = least - 10 - unit;
    uint64_t kept = right <= 0 ? magnitude << -right : right > 63 ? 0 : magnitude >> right;
    if (right > 0 && right <= 63) {
      const uint64_t rest = magnitude & ((uint64_t{1} << right) - 1), half = uint64_t{1} << (right - 1);
      if (rest > half || (rest == half && (kept & 1))) ++kept;
    }
    const uint32_t word = (static_cast<uint32_t>(least + 14) << 10) + static_cast<uint32_t>(kept);
    return word == 0 ? 0 : sign | std::min(word, kInfinity16);
  }

  std::array<Term, OperandRows::kMaxK + 1> terms_;
  int count_ = 0;
  bool nan_ = false, plus_ = false, minus_ = false;
};

// A finite element as a term with 23 fraction bits.
Term Decompose(float value, int exponent) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t field = word >> 23 & 0xff;
  Term t{};
  t.negative = word >> 31;
  t.fraction = 23;
  t.exponent = exponent;
  t.significand = field == 0 ? word & 0x7fffff : (word & 0x7fffff) | 0x800000;
  // Subnormals of the small formats are normal floats: bring them back to their format's least exponent.
  t.significand >>= t.exponent - (static_cast<int>(std::max(field, 1u)) - 127);
  return t;
}

bool IsNan(float v) { return (std::bit_cast<uint32_t>(v) & 0x7fffffff) > kInfinity32; }
bool IsInfinite(float v) { return (std::bit_cast<uint32_t>(v) & 0x7fffffff) == kInfinity32; }

void AddProduct(float a, int exponent_a, float b, int exponent_b, int scale_exponent, Terms& terms) {
  if (IsNan(a) || IsNan(b)) return terms.AddNan();
  if (IsInfinite(a) || IsInfinite(b)) {
    if (a == 0 || b == 0) return terms.AddNan();
    return terms.AddInfinity((a < 0) != (b < 0));
  }
  if (a == 0 || b == 0) return;
  const Term x = Decompose(a, exponent_a), y = Decompose(b, exponent_b);
  terms.Add({x.negative != y.negative, x.significand * y.significand, 46, x.exponent + y.exponent + scale_exponent});
}

void AddAccumulator(AccumulatorType d, uint32_t c, int scale_d, Terms& terms) {
  const bool half = d == AccumulatorType::kF16;
  const int mantissa_bits = half ? 10 : 23, bias = half ? 15 : 127;
  const uint32_t last = half ? 31 : 255;
  const uint32_t mantissa = c & ((1u << mantissa_bits) - 1), field = c >> mantissa_bits & last;
  const bool negative = c >> (half ? 15 : 31) & 1;
  if (field == last) return mantissa != 0 ? terms.AddNan() : terms.AddInfinity(negative);
  terms.Add({negative, field == 0 ? mantissa : mantissa | 1u << mantissa_bits, mantissa_bits,
             static_cast<int>(std::max(field, 1u)) - bias - scale_d});
}

// A scale factor as significand * 2^(exponent - fraction).
struct Scale {
  uint64_t significand = 1;
  int fraction = 0, exponent = 0;
  bool nan = false;
};

Scale ScaleOf(ScaleType type, uint8_t bits) {
  if (type == ScaleType::kUe8m0) return {1, 0, bits - 127, bits == 255};
  const uint32_t code = bits & 0x7f, field = code >> 3, mantissa = code & 7;
  return {field == 0 ? mantissa : mantissa | 8, 3, static_cast<int>(std::max(field, 1u)) - 7, code == 0x7f};
}

// The groups of sixteen products of one row and one column: `sums` are their exact sums in quarters, the unit of e2m1
// products.
void AddGroups(const OperandRows& a, int m, const OperandRows& b, int n, int group, const int32_t* sums, Terms& terms) {
  const int per_factor = a.k() / a.factors();
  for (int first = 0; first < a.k(); first += group) {
    const Scale x = ScaleOf(a.scale_type(), a.scale(m, first / per_factor));
    const Scale y = ScaleOf(b.scale_type(), b.scale(n, first / per_factor));
    if (x.nan || y.nan) return terms.AddNan();
    const int64_t quarters = sums[first / group];
    terms.Add({quarters < 0, static_cast<uint64_t>(std::llabs(quarters)) * x.significand * y.significand,
               2 + x.fraction + y.fraction, x.exponent + y.exponent});
  }
}

constexpr int kMaxGroups = OperandRows::kMaxK / 16;

uint32_t SumGroupsOne(const OperandRows& a, int m, const OperandRows& b, int n, const SumOptions& options, uint32_t c) {
  int32_t sums[kMaxGroups] = {};
  const int group = options.adder.group;
  for (int k = 0; k < a.k(); ++k) {
    sums[k / group] += static_cast<int32_t>(a.values()[a.At(m, k)] * b.values()[b.At(n, k)] * 4);
  }
  Terms terms;
  if (options.accumulate) AddAccumulator(options.d, c, options.scale_d, terms);
  AddGroups(a, m, b, n, group, sums, terms);
  return terms.Sum(options.d, options.adder);
}

// Those of neighbouring rows and groups are so many places apart.
GroupFactors FactorsOf(const OperandRows& rows, int group, size_t row_step, size_t group_step) {
  const int groups = rows.k() / group, per_factor = rows.k() / rows.factors();
  const size_t all = std::max(row_step * static_cast<size_t>(rows.rows()), group_step * static_cast<size_t>(groups));
  GroupFactors factors{std::vector<double>(all), std::vector<int64_t>(all)};
  for (int r = 0; r < rows.rows(); ++r) {
    for (int g = 0; g < groups; ++g) {
      const Scale scale = ScaleOf(rows.scale_type(), rows.scale(r, g * group / per_factor));
      const size_t at = static_cast<size_t>(r) * row_step + static_cast<size_t>(g) * group_step;
      factors.value[at] = scale.significand * base::PowerOfTwo(scale.exponent - scale.fraction);
      factors.exponent[at] = scale.nan ? GroupFactors::kNan : scale.exponent;
    }
  }
  return factors;
}

uint32_t SumIntegers(const OperandRows& a, int m, const OperandRows& b, int n, const SumOptions& options, uint32_t c) {
  int64_t total = options.accumulate ? static_cast<int32_t>(c) : 0;
  for (int k = 0; k < a.k(); ++k) total += static_cast<int64_t>(a.integers()[a.At(m, k)]) * b.integers()[b.At(n, k)];
  if (options.saturate) total = std::clamp<int64_t>(total, INT32_MIN, INT32_MAX);
  return static_cast<uint32_t>(total);
}

}  // namespace

AdderRule WgmmaAdder(ElementType a, AccumulatorType d) {
  AdderRule rule;
  if (a == ElementType::kE4m3 || a == ElementType::kE5m2) rule.keep = rule.out = 13;
  if (d == AccumulatorType::kF16) rule.floor = -21;
  return rule;
}

AdderRule Tcgen05Adder(AccumulatorType d) {
  AdderRule rule;
  if (d == AccumulatorType::kF16) rule.floor = -21;
  return rule;
}

AdderRule Tcgen05FourBitAdder() {
  AdderRule rule;
  rule.keep = 35;
  rule.group = 16;
  return rule;
}

uint32_t SumOne(const OperandRows& a, int row_a, const OperandRows& b, int row_b, const SumOptions& options,
                uint32_t c) {
  if (IsInteger(a.type())) return SumIntegers(a, row_a, b, row_b, options, c);
  if (options.adder.group > 1) return SumGroupsOne(a, row_a, b, row_b, options, c);
  Terms terms;
  if (options.accumulate) AddAccumulator(options.d, c, options.scale_d, terms);
  const int per_factor = a.factors() == 0 ? a.k() : a.k() / a.factors();
  for (int first = 0; first < a.k(); first += per_factor) {
    int scale_exponent = 0;
    if (a.factors() != 0) {
      const Scale x = ScaleOf(a.scale_type(), a.scale(row_a, first / per_factor));
      const Scale y = ScaleOf(b.scale_type(), b.scale(row_b, first / per_factor));
      if (x.nan || y.nan) terms.AddNan();
      scale_exponent = x.exponent + y.exponent;
    }
    for (int k = first; k < first + per_factor; ++k) {
      AddProduct(a.values()[a.At(row_a, k)], a.exponent(row_a, k), b.values()[b.At(row_b, k)], b.exponent(row_b, k),
                 scale_exponent, terms);
    }
  }
  return terms.Sum(options.d, options.adder);
}

void SumGroups(const VectorSums& vector, const OperandRows& a, const OperandRows& b, const SumOptions& options,
               AccumulatorTile d) {
  const int group = options.adder.group;
  vector.groups(a, b, FactorsOf(a, group, static_cast<size_t>(a.k() / group), 1),
                FactorsOf(b, group, 1, static_cast<size_t>(b.pitch())), options, d);
}

void MultiplyAccumulate(const OperandRows& a, const OperandRows& b, const SumOptions& options, AccumulatorTile d) {
  LS_CHECK(a.side() == OperandRows::Side::kA && b.side() == OperandRows::Side::kB, "operands exchanged");
  LS_CHECK(a.k() == b.k() && IsInteger(a.type()) == IsInteger(b.type()), "K ", a.k(), " and ", b.k(), " of ",
           NameOf(a.type()), " and ", NameOf(b.type()));
  LS_CHECK(a.factors() == b.factors(), "scale factors ", a.factors(), " and ", b.factors());
  LS_CHECK(IsInteger(a.type()) == (options.d == AccumulatorType::kS32), "accumulator ", NameOf(options.d));
  const VectorSums& vector = SelectVectorSums();
  if (IsInteger(a.type())) return vector.integers(a, b, options, d);
  if (options.arithmetic == SumArithmetic::kFast) {
    if (a.factors() == 0) return vector.fast(a, b, options, d);
    OperandRows scaled_a = a, scaled_b = b;
    scaled_a.FoldScales();
    scaled_b.FoldScales();
    return vector.fast(scaled_a, scaled_b, options, d);
  }
  if (options.adder.group > 1) return SumGroups(vector, a, b, options, d);
  vector.exact(a, b, options, d);
}

}  // namespace laneshift::emulator
