#include "emulator/units/fused_sum_vector.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/units/vector_targets.h"

// Why floats can do the adder's integer work exactly. With top = 2^t the largest exponent, a product p of two elements
// (at most 11 significant bits each) is exact in f32, p * 2^(keep - t) only changes its exponent, and the conversion to
// int32 drops exactly the bits that the adder drops, toward zero. Sixteen such integers, each below 2^27, fit in 32
// bits. What could leave the range of normal floats (sums of exponents above 125, tops below 2^-100) and all infinities
// and NaNs go to SumOne.
//
// The loops are plain code over kLanes columns: GCC vectorises them at -O3 for the instruction set of the function that
// they are inlined into.

namespace laneshift::emulator {
namespace {

constexpr int kLanes = OperandRows::kPadding;
constexpr int kChunk = 16;                 // products that an int32 can sum
constexpr uint32_t kTopLimit = 27u << 23;  // 2^-100 as bits

LS_INLINE size_t Offset(int row, size_t pitch) { return static_cast<size_t>(row) * pitch; }

struct Constants {
  uint32_t floor_bits;  // 2^floor, or 0 where it lies below kTopLimit
  uint32_t scale_bits;  // scale_bits - bits(top) = bits of 2^(keep - t)
  uint64_t keep_mask;   // of a double: the result's fraction bits
  float scale_c;
};

// The scale factors of one row with kLanes columns (UE8M0, one factor for all of K): the whole sum moves by 2^(sa +
// sb), so the accumulator is moved the other way and the result back. Beyond +-kScaleReach the floats could run out.
constexpr int kScaleReach = 24;
constexpr uint32_t kScaledTopLimit = kTopLimit + (static_cast<uint32_t>(kScaleReach) << 23);
struct LaneScales {
  float down[kLanes], up[kLanes];
  uint32_t left[kLanes];
};
LS_INLINE void LoadLaneScales(const OperandRows& a, int m, const OperandRows& b, int n0, int lanes,
                              LaneScales& scales) {
  for (int j = 0; j < kLanes; ++j) {
    const int x = a.scale(m, 0), y = j < lanes ? b.scale(n0 + j, 0) : 127;
    const int exponent = x + y - 2 * 127;
    scales.left[j] = x == 255 || y == 255 || exponent > kScaleReach || exponent < -kScaleReach;
    const int used = scales.left[j] ? 0 : exponent;
    scales.down[j] = std::bit_cast<float>(static_cast<uint32_t>(127 - used) << 23);
    scales.up[j] = std::bit_cast<float>(static_cast<uint32_t>(127 + used) << 23);
  }
}

LS_INLINE Constants ConstantsOf(const SumOptions& o) {
  Constants c;
  c.floor_bits = o.adder.floor < -100 ? 0 : static_cast<uint32_t>(o.adder.floor + 127) << 23;
  c.scale_bits = static_cast<uint32_t>(127 + o.adder.keep + 127) << 23;
  c.keep_mask = ~((uint64_t{1} << (52 - o.adder.out)) - 1);
  c.scale_c = std::bit_cast<float>(static_cast<uint32_t>(127 - o.scale_d) << 23);
  return c;
}

// The accumulator's values and powers of kLanes cells; lanes past the last column read as zero.
LS_INLINE void LoadAccumulator(const SumOptions& o, const uint32_t* cells, int lanes, float scale_c, float* value,
                               uint32_t* power) {
  uint32_t words[kLanes] = {};
  if (o.accumulate) std::memcpy(words, cells, static_cast<size_t>(lanes) * sizeof(uint32_t));
  if (o.d == AccumulatorType::kF16) {
    for (int i = 0; i < kLanes; ++i) {
      const float v = base::F16ToFloat(static_cast<uint16_t>(words[i])) * scale_c;
      const float least = 0x1p-14f * scale_c;
      value[i] = v;
      power[i] = v == 0 ? 0 : std::max(std::bit_cast<uint32_t>(v) & 0x7f800000, std::bit_cast<uint32_t>(least));
    }
  } else {
    for (int i = 0; i < kLanes; ++i) {
      const float v = std::bit_cast<float>(words[i]) * scale_c;
      value[i] = v;
      power[i] = std::bit_cast<uint32_t>(v) & 0x7f800000;
    }
  }
}

// The largest power of two among the products of row m with kLanes columns from n0, as bits, joined with `top`.
LS_INLINE void TopPowers(const float* row, const float* columns, size_t pitch, int k, uint32_t* top) {
  float best[kLanes];
  std::memcpy(best, top, sizeof(best));
  for (int i = 0; i < k; ++i) {
    const float p = row[i];
    const float* q = columns + Offset(i, pitch);
    for (int j = 0; j < kLanes; ++j) best[j] = best[j] > p * q[j] ? best[j] : p * q[j];
  }
  std::memcpy(top, best, sizeof(best));
}

// Adds the cut products, in units of 1/scale, to total.
LS_INLINE void AddCutProducts(const float* row, const float* columns, size_t pitch, int k, const float* scale,
                              double* total) {
  for (int first = 0; first < k; first += kChunk) {
    int32_t sum[kLanes] = {};
    const int last = std::min(first + kChunk, k);
    for (int i = first; i < last; ++i) {
      const float a = row[i];
      const float* b = columns + Offset(i, pitch);
      for (int j = 0; j < kLanes; ++j) sum[j] += static_cast<int32_t>(a * b[j] * scale[j]);
    }
    for (int j = 0; j < kLanes; ++j) total[j] += sum[j];
  }
}

// total / scale rounded as the adder does, as the accumulator's words.
LS_INLINE void RoundTotals(const SumOptions& o, uint64_t keep_mask, const double* total, const float* scale,
                           const LaneScales* scales, uint32_t* words) {
  double unit[kLanes];
  for (int j = 0; j < kLanes; ++j) unit[j] = std::bit_cast<float>((254u << 23) - std::bit_cast<uint32_t>(scale[j]));
  if (scales != nullptr) {
    for (int j = 0; j < kLanes; ++j) unit[j] *= scales->up[j];
  }
  if (o.d == AccumulatorType::kF16) {
    for (int j = 0; j < kLanes; ++j) {
      const double v = total[j] * unit[j];
      // Adding 1.5 * 2^52 ulps rounds to nearest even at f16's ulp; the subtraction gives the rounded value back.
      const uint64_t power = std::max(std::bit_cast<uint64_t>(v) & 0x7ff0000000000000, uint64_t{1023 - 14} << 52);
      const double big = std::bit_cast<double>(power + (uint64_t{42} << 52)) * 1.5;
      const auto half = base::FloatToF16(static_cast<float>(v + big - big));
      words[j] = (half & 0x7fff) == 0 ? 0 : half;
    }
    return;
  }
  for (int j = 0; j < kLanes; ++j) {
    const double cut = std::bit_cast<double>(std::bit_cast<uint64_t>(total[j]) & keep_mask);
    words[j] = std::bit_cast<uint32_t>(static_cast<float>(cut * unit[j]));
  }
}

// kLanes columns of one row on the exact path. Lanes that it cannot do are left to SumOne by the returned marks.
LS_INLINE bool ExactLanes(const SumOptions& o, const Constants& constants, const float* values_a, const float* powers_a,
                          const float* values_b, const float* powers_b, size_t pitch, int k, bool may_underflow,
                          const LaneScales* scales, const uint32_t* cells, int lanes, uint32_t* words, uint32_t* left) {
  float c[kLanes], scale[kLanes];
  uint32_t top[kLanes];
  double total[kLanes];
  LoadAccumulator(o, cells, lanes, constants.scale_c, c, top);
  for (int j = 0; j < kLanes; ++j) left[j] = top[j] >= 0x7f800000;
  const uint32_t limit = scales == nullptr ? kTopLimit : kScaledTopLimit;
  if (scales != nullptr) {
    for (int j = 0; j < kLanes; ++j) {
      left[j] |= scales->left[j] | (top[j] > (127u + 100) << 23);
      const float moved = std::bit_cast<float>(top[j]) * scales->down[j];
      c[j] *= scales->down[j];
      // A subnormal accumulator has no power here; any other one may become subnormal, and then only matters on its
      // own.
      top[j] = std::bit_cast<uint32_t>(moved) & 0x7f800000;
    }
  }
  TopPowers(powers_a, powers_b, pitch, k, top);
  uint32_t any = 0;
  for (int j = 0; j < kLanes; ++j) {
    // A top of zero is a true zero sum unless products or a subnormal accumulator vanished on the way.
    const uint32_t nothing = top[j] == 0 && c[j] == 0 && !may_underflow;
    top[j] = std::max(top[j], constants.floor_bits);
    left[j] |= top[j] < limit && !nothing;
    any |= left[j];
    const uint32_t usable = std::max(top[j], limit);
    // A lane that is left to SumOne sums zeros: its products could outgrow the integers.
    scale[j] = left[j] ? 0.0f : std::bit_cast<float>(constants.scale_bits - usable);
    c[j] = left[j] ? 0.0f : c[j];
  }
  for (int j = 0; j < kLanes; ++j) total[j] = static_cast<int32_t>(c[j] * scale[j]);
  AddCutProducts(values_a, values_b, pitch, k, scale, total);
  RoundTotals(o, constants.keep_mask, total, scale, scales, words);
  return any != 0;
}

LS_INLINE void ExactBody(const OperandRows& a, const OperandRows& b, const SumOptions& o, AccumulatorTile d) {
  const Constants constants = ConstantsOf(o);
  const auto pitch = static_cast<size_t>(b.pitch());
  const int k = a.k();
  const bool scaled = a.factors() == 1 && a.scale_type() == ScaleType::kUe8m0;
  const bool unknown_scales = a.factors() != 0 && !scaled;
  for (int m = 0; m < a.rows(); ++m) {
    const OperandRows::RowFacts& facts = a.facts(m);
    const bool by_definition =
        unknown_scales || facts.special || b.all().special || facts.greatest + b.all().greatest > 125;
    // A row of zeros leaves C and its rounding; without C it leaves zeros.
    const int used_k = facts.zero && !b.all().special ? 0 : k;
    const bool may_underflow = used_k != 0 && facts.least + b.all().least < -126;
    uint32_t* row = d.Row(m);
    for (int n0 = 0; n0 < b.rows(); n0 += kLanes) {
      const int lanes = std::min(kLanes, b.rows() - n0);
      uint32_t words[kLanes], left[kLanes];
      bool any = true;
      if (by_definition) {
        for (uint32_t& l : left) l = 1;
      } else {
        LaneScales scales;
        if (scaled) LoadLaneScales(a, m, b, n0, lanes, scales);
        any =
            ExactLanes(o, constants, a.values() + a.At(m, 0), a.powers() + a.At(m, 0), b.values() + n0, b.powers() + n0,
                       pitch, used_k, may_underflow, scaled ? &scales : nullptr, row + n0, lanes, words, left);
      }
      if (any) {
        for (int j = 0; j < lanes; ++j) {
          if (left[j]) words[j] = SumOne(a, m, b, n0 + j, o, row[n0 + j]);
        }
      }
      std::memcpy(row + n0, words, static_cast<size_t>(lanes) * sizeof(uint32_t));
    }
  }
}

// The accumulator's cells as floats; those past the last column read as zero.
template <int kColumns>
LS_INLINE void LoadPlain(const SumOptions& o, const uint32_t* cells, int lanes, float scale_c, float* value) {
  uint32_t words[kColumns] = {};
  if (o.accumulate && lanes == kColumns) {
    std::memcpy(words, cells, sizeof(words));
  } else if (o.accumulate) {
    std::memcpy(words, cells, static_cast<size_t>(lanes) * sizeof(uint32_t));
  }
  const bool half = o.d == AccumulatorType::kF16;
  for (int j = 0; j < kColumns; ++j) {
    value[j] = (half ? base::F16ToFloat(static_cast<uint16_t>(words[j])) : std::bit_cast<float>(words[j])) * scale_c;
  }
}

template <int kColumns>
LS_INLINE void StorePlain(const SumOptions& o, const float* value, int lanes, uint32_t* cells) {
  uint32_t words[kColumns];
  if (o.d == AccumulatorType::kF16) {
    for (int j = 0; j < kColumns; ++j) words[j] = base::FloatToF16(value[j]);
  } else {
    std::memcpy(words, value, sizeof(words));
  }
  if (lanes == kColumns) {
    std::memcpy(cells, words, sizeof(words));
  } else {
    std::memcpy(cells, words, static_cast<size_t>(lanes) * sizeof(uint32_t));
  }
}

// sum[r][j] += the products of row r with column j. The vectors are spelt out: the sums must stay in registers, and the
// vectoriser keeps arrays of them in memory.
template <int kRows, int kFloats>
LS_INLINE void AddPlainProducts(const float* const* rows, const float* columns, size_t pitch, int k,
                                float (*sum)[2 * kFloats]) {
  using Vector [[gnu::vector_size(kFloats * sizeof(float))]] = float;
  Vector left[kRows], right[kRows];
  for (int r = 0; r < kRows; ++r) {
    std::memcpy(&left[r], sum[r], sizeof(Vector));
    std::memcpy(&right[r], sum[r] + kFloats, sizeof(Vector));
  }
  for (int i = 0; i < k; ++i, columns += pitch) {
    Vector x, y;
    std::memcpy(&x, columns, sizeof(Vector));
    std::memcpy(&y, columns + kFloats, sizeof(Vector));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      left[r] += rows[r][i] * x;
      right[r] += rows[r][i] * y;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    std::memcpy(sum[r], &left[r], sizeof(Vector));
    std::memcpy(sum[r] + kFloats, &right[r], sizeof(Vector));
  }
}

// Plain f32: a few rows of A at a time, so that each load of B feeds as many chains. kFloats: of one vector register.
template <int kFloats>
LS_INLINE void FastBody(const OperandRows& a, const OperandRows& b, const SumOptions& o, AccumulatorTile d) {
  // As many sums as fill half of the registers.
  constexpr int kRows = kFloats == 16 ? 8 : 4, kColumns = 2 * kFloats;
  static_assert(OperandRows::kPadding % kColumns == 0, "a block reads no column beyond the padding");
  const float scale_c = std::bit_cast<float>(static_cast<uint32_t>(127 - o.scale_d) << 23);
  const auto pitch = static_cast<size_t>(b.pitch());
  for (int m0 = 0; m0 < a.rows(); m0 += kRows) {
    const int rows = std::min(kRows, a.rows() - m0);
    const float* values[kRows];
    for (int r = 0; r < kRows; ++r) values[r] = a.values() + a.At(m0 + std::min(r, rows - 1), 0);
    for (int n0 = 0; n0 < b.rows(); n0 += kColumns) {
      const int lanes = std::min(kColumns, b.rows() - n0);
      float sum[kRows][kColumns] = {};
      for (int r = 0; r < rows; ++r) {
        LoadPlain<kColumns>(o, d.Row(m0 + r) + n0, lanes, scale_c, sum[r]);
      }
      AddPlainProducts<kRows, kFloats>(values, b.values() + n0, pitch, a.k(), sum);
      for (int r = 0; r < rows; ++r) {
        StorePlain<kColumns>(o, sum[r], lanes, d.Row(m0 + r) + n0);
      }
    }
  }
}

LS_INLINE void IntegerBody(const OperandRows& a, const OperandRows& b, const SumOptions& o, AccumulatorTile d) {
  const auto pitch = static_cast<size_t>(b.pitch());
  for (int m = 0; m < a.rows(); ++m) {
    const int32_t* x = a.integers() + a.At(m, 0);
    for (int n0 = 0; n0 < b.rows(); n0 += kLanes) {
      const int lanes = std::min(kLanes, b.rows() - n0);
      uint32_t* cells = d.Row(m) + n0;
      int32_t sum[kLanes] = {};
      for (int i = 0; i < a.k(); ++i) {
        const int32_t* q = b.integers() + Offset(i, pitch) + n0;
        for (int j = 0; j < kLanes; ++j) sum[j] += x[i] * q[j];
      }
      for (int j = 0; j < lanes; ++j) {
        int64_t total = sum[j];
        if (o.accumulate) total += static_cast<int32_t>(cells[j]);
        if (o.saturate) total = std::clamp<int64_t>(total, INT32_MIN, INT32_MAX);
        cells[j] = static_cast<uint32_t>(total);
      }
    }
  }
}

LS_INLINE void GroupBody(const OperandRows& a, int m, const OperandRows& b, int group, int32_t* sums) {
  const auto pitch = static_cast<size_t>(b.pitch());
  const float* row = a.values() + a.At(m, 0);
  for (size_t n0 = 0; n0 < pitch; n0 += kLanes) {
    for (int first = 0; first < a.k(); first += group) {
      float sum[kLanes] = {};  // products of e2m1 and their sums are exact in f32
      for (int k = first; k < first + group; ++k) {
        const float* q = b.values() + Offset(k, pitch) + n0;
        for (int j = 0; j < kLanes; ++j) sum[j] += row[k] * q[j];
      }
      int32_t* to = sums + Offset(first / group, pitch) + n0;
      for (int j = 0; j < kLanes; ++j) to[j] = static_cast<int32_t>(sum[j] * 4);
    }
  }
}

#define LS_VECTOR_SUMS(NAME, FLOATS, TARGET)                                                                       \
  TARGET void Exact##NAME(const OperandRows& a, const OperandRows& b, const SumOptions& o, AccumulatorTile d) {    \
    ExactBody(a, b, o, d);                                                                                         \
  }                                                                                                                \
  TARGET void Fast##NAME(const OperandRows& a, const OperandRows& b, const SumOptions& o, AccumulatorTile d) {     \
    FastBody<FLOATS>(a, b, o, d);                                                                                  \
  }                                                                                                                \
  TARGET void Integers##NAME(const OperandRows& a, const OperandRows& b, const SumOptions& o, AccumulatorTile d) { \
    IntegerBody(a, b, o, d);                                                                                       \
  }                                                                                                                \
  TARGET void Groups##NAME(const OperandRows& a, int m, const OperandRows& b, int group, int32_t* sums) {          \
    GroupBody(a, m, b, group, sums);                                                                               \
  }                                                                                                                \
  constexpr VectorSums k##NAME = {Exact##NAME, Fast##NAME, Integers##NAME, Groups##NAME, #NAME};

LS_VECTOR_SUMS(Portable, 4, )
#if defined(__x86_64__)
LS_VECTOR_SUMS(Avx2, 8, LS_AVX2)
LS_VECTOR_SUMS(Avx512, 16, LS_AVX512)
#endif

}  // namespace

std::vector<const VectorSums*> RunnableVectorSums() {
  std::vector<const VectorSums*> runnable = {&kPortable};
#if defined(__x86_64__)
  if (BestVectorSet() >= VectorSet::kAvx2) runnable.push_back(&kAvx2);
  if (BestVectorSet() >= VectorSet::kAvx512) runnable.push_back(&kAvx512);
#endif
  return runnable;
}

const VectorSums& SelectVectorSums() {
  static const VectorSums& chosen = *RunnableVectorSums().back();
  return chosen;
}

}  // namespace laneshift::emulator
