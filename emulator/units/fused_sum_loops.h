// The loops of fused_sum_vector.h, as templates over the floats of a vector.
//
// A block of rows and columns of D at a time, as many as the registers of the processor hold: two vectors of columns
// while there are enough of them, one at the end.
//
// Included by one source file of each vector instruction set, between its pragmas (vector_targets.h), after everything
// that it includes itself. Thread-safety: pure but for the tile.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/units/cell_vectors.h"
#include "emulator/units/exact_sum_loops.h"
#include "emulator/units/fused_sum_vector.h"
#include "emulator/units/group_sum_loops.h"
#include "emulator/units/sum_vectors.h"
#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {
namespace {

// Calls block(m0, n0) with the number of vectors for blocks of `kSums` vectors that cover D, two of which lie next to
// each other where there are columns for both. A vector of 16 floats is replaced by one of 8 where no more columns are
// left.
template <int kFloats, int kSums, typename Block>
LS_INLINE void ForEachBlock(int rows, int columns, const Block& block) {
  for (int n0 = 0; n0 < columns;) {
    const int left = columns - n0;
    if (kFloats > 4 && left <= 8) {
      for (int m0 = 0; m0 < rows; m0 += kSums) block.template Run<8, 1, kSums>(m0, n0);
      n0 += 8;
    } else if (kFloats > 4 && left < 2 * kFloats) {
      for (int m0 = 0; m0 < rows; m0 += kSums) block.template Run<kFloats, 1, kSums>(m0, n0);
      n0 += kFloats;
    } else {
      for (int m0 = 0; m0 < rows; m0 += kSums / 2) block.template Run<kFloats, 2, kSums / 2>(m0, n0);
      n0 += 2 * kFloats;
    }
  }
}

// Plain f32: a few rows of A at a time, so that each load of B feeds as many chains.
template <typename Cells>
struct PlainSums {
  const OperandRows &a, &b;
  const SumOptions& o;
  Cells cells;

  PlainSums(const OperandRows& rows_a, const OperandRows& rows_b, const SumOptions& options,
            const AccumulatorTile& tile)
      : a(rows_a), b(rows_b), o(options), cells(tile) {}

  template <int kFloats>
  LS_INLINE void Load(int m0, int r, int n, int lanes, Floats<kFloats>& sum) const {
    Words<kFloats> words;
    cells.template Load<kFloats>(m0, r, n, lanes, words);
    if constexpr (Cells::kHalf) {
      CellsToFloats<kFloats>(words, sum);
    } else {
      std::memcpy(&sum, &words, sizeof(sum));
    }
  }
  template <int kFloats>
  LS_INLINE void Store(int m0, int r, int n, int lanes, const Floats<kFloats>& sum) const {
    Words<kFloats> words;
    if constexpr (Cells::kHalf) {
      FloatsToCells<kFloats>(sum, words);
    } else {
      std::memcpy(&words, &sum, sizeof(words));
    }
    cells.template Store<kFloats>(m0, r, n, lanes, words);
  }

  // A block that lies in D as a whole goes without a question for each row.
  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void LoadBlock(int m0, int n0, Floats<kFloats> (*sum)[kVectors]) const {
    const int rows = std::min(kRows, a.rows() - m0);
    if (o.accumulate && rows == kRows && n0 + kVectors * kFloats <= b.rows()) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) Load<kFloats>(m0, r, n0 + v * kFloats, kFloats, sum[r][v]);
      }
    } else {
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          const int n = n0 + v * kFloats;
          sum[r][v] = Floats<kFloats>{};
          if (o.accumulate) {
            Load<kFloats>(m0, std::min(r, rows - 1), n, LanesAt<kFloats>(n, b.rows()), sum[r][v]);
          }
        }
      }
    }
    if (o.scale_d == 0) return;
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] *= std::bit_cast<float>(static_cast<uint32_t>(127 - o.scale_d) << 23);
    }
  }
  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void StoreBlock(int m0, int n0, const Floats<kFloats> (*sum)[kVectors]) const {
    const int rows = std::min(kRows, a.rows() - m0);
    if (rows == kRows && n0 + kVectors * kFloats <= b.rows()) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) Store<kFloats>(m0, r, n0 + v * kFloats, kFloats, sum[r][v]);
      }
      return;
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        const int n = n0 + v * kFloats;
        Store<kFloats>(m0, r, n, LanesAt<kFloats>(n, b.rows()), sum[r][v]);
      }
    }
  }

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Run(int m0, int n0) const {
    const int last = a.rows() - 1;
    const float* values[kRows];
    for (int r = 0; r < kRows; ++r) {
      values[r] = a.values() + a.At(std::min(m0 + r, last), 0);
      cells.Prefetch(std::min(m0 + r + kRows, last), n0);
      if constexpr (kFloats * kVectors > 16) cells.Prefetch(std::min(m0 + r + kRows, last), n0 + 16);
    }
    Floats<kFloats> sum[kRows][kVectors];
    LoadBlock<kFloats, kVectors, kRows>(m0, n0, sum);
    AddProducts<kFloats, kVectors, kRows>(values, b, n0, 0, a.k(), sum);
    StoreBlock<kFloats, kVectors, kRows>(m0, n0, sum);
  }
};

template <typename Cells>
struct IntegerSums {
  const OperandRows &a, &b;
  const SumOptions& o;
  Cells cells;

  IntegerSums(const OperandRows& rows_a, const OperandRows& rows_b, const SumOptions& options,
              const AccumulatorTile& tile)
      : a(rows_a), b(rows_b), o(options), cells(tile) {}

  template <int kFloats, int kVectors, int kRows>
  LS_INLINE void Run(int m0, int n0) const {
    const int rows = std::min(kRows, a.rows() - m0);
    const int32_t* values[kRows];
    Integers<kFloats> sum[kRows][kVectors] = {};
    for (int r = 0; r < kRows; ++r) values[r] = a.integers() + a.At(m0 + std::min(r, rows - 1), 0);
    const int32_t* columns = b.integers() + n0;
    for (int i = 0; i < a.k(); ++i, columns += b.pitch()) {
      Integers<kFloats> y[kVectors];
      LoadVectors<kVectors>(columns, y);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[r][v] += values[r][i] * y[v];
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < kVectors; ++v) Store<kFloats>(m0, r, n0 + v * kFloats, sum[r][v]);
    }
  }

 private:
  template <int kFloats>
  LS_INLINE void Store(int m0, int r, int n, const Integers<kFloats>& sum) const {
    const int lanes = LanesAt<kFloats>(n, b.rows());
    Words<kFloats> words{};
    if (o.accumulate) cells.template Load<kFloats>(m0, r, n, lanes, words);
    if (o.saturate) {
      for (int j = 0; j < kFloats; ++j) {
        const int64_t total = int64_t{sum[j]} + static_cast<int32_t>(words[j]);
        words[j] = static_cast<uint32_t>(std::clamp<int64_t>(total, INT32_MIN, INT32_MAX));
      }
    } else {
      words += reinterpret_cast<Words<kFloats>>(sum);
    }
    cells.template Store<kFloats>(m0, r, n, lanes, words);
  }
};

// D in rows of cells, or in registers.
template <template <typename> typename Sums, int kFloats, int kSums>
LS_INLINE void OnTile(const OperandRows& a, const OperandRows& b, const SumOptions& o, const AccumulatorTile& d) {
  const bool half = o.d == AccumulatorType::kF16;
  const auto run = [&](const auto& sums) { ForEachBlock<kFloats, kSums>(a.rows(), b.rows(), sums); };
  if (d.registers == nullptr)
    return half ? run(Sums<RowCells<true>>(a, b, o, d)) : run(Sums<RowCells<false>>(a, b, o, d));
  half ? run(Sums<FragmentCells<true>>(a, b, o, d)) : run(Sums<FragmentCells<false>>(a, b, o, d));
}

// kSums: vectors of sums at a time; of plain sums and integers there is room for twice as many.
template <int kFloats, int kSums>
constexpr VectorSums SumsOf(const char* name) {
  using A = const OperandRows&;
  using O = const SumOptions&;
  return {[](A a, A b, O o, AccumulatorTile d) {
            if (o.d == AccumulatorType::kF16) return OnTile<ExactSums, kFloats, kSums>(a, b, o, d);
            const TowardZero rounding;
            OnTile<ExactSums, kFloats, kSums>(a, b, o, d);
          },
          [](A a, A b, O o, AccumulatorTile d) { OnTile<PlainSums, kFloats, 2 * kSums>(a, b, o, d); },
          [](A a, A b, O o, AccumulatorTile d) { OnTile<IntegerSums, kFloats, 2 * kSums>(a, b, o, d); },
          kGroupSumsOf<kFloats>, name};
}

}  // namespace
}  // namespace laneshift::emulator
