// Runs of accumulator cells as vectors, for the loops of fused_sum_vector.cc: in rows of cells, and in the registers of
// a warpgroup, where eight columns of a row are four lanes of two registers (or of one, with two f16 in each lane).
//
// A cell is named by a block of rows, the row in the block and the column: blocks are of a power of two of rows, at
// most 16, and begin at a multiple of that.
//
// Thread-safety: views of what their user owns. A run never leaves the tile; lanes beyond it read as zero.
#pragma once

#include <cstdint>
#include <cstring>

#include "emulator/units/fused_sum.h"
#include "emulator/units/vector_targets.h"

namespace laneshift::emulator {

template <bool kF16>
class RowCells {
 public:
  static constexpr bool kHalf = kF16;
  explicit RowCells(const AccumulatorTile& tile) : tile_(tile) {}

  // Cells n to n + lanes of row m0 + r. REQUIRES: lanes <= kFloats.
  template <int kFloats>
  LS_INLINE void Load(int m0, int r, int n, int lanes, VectorOf<uint32_t, kFloats>& words) const {
    if (lanes == kFloats) {
      std::memcpy(&words, tile_.Row(m0 + r) + n, sizeof(words));
    } else {
      words = VectorOf<uint32_t, kFloats>{};
      std::memcpy(&words, tile_.Row(m0 + r) + n, static_cast<size_t>(lanes) * sizeof(uint32_t));
    }
  }
  template <int kFloats>
  LS_INLINE void Store(int m0, int r, int n, int lanes, const VectorOf<uint32_t, kFloats>& words) const {
    if (lanes == kFloats) {
      std::memcpy(tile_.Row(m0 + r) + n, &words, sizeof(words));
    } else {
      std::memcpy(tile_.Row(m0 + r) + n, &words, static_cast<size_t>(lanes) * sizeof(uint32_t));
    }
  }
  // Soon: rows of Tensor Memory lie too far apart for the processor to see the pattern.
  LS_INLINE void Prefetch(int m, int n) const { __builtin_prefetch(tile_.Row(m) + n, 1); }

 private:
  const AccumulatorTile tile_;
};

// REQUIRES: a tile in registers, whose columns are a multiple of 8.
template <bool kF16>
class FragmentCells {
 public:
  static constexpr bool kHalf = kF16;
  explicit FragmentCells(const AccumulatorTile& tile) : tile_(tile) {}

  template <int kFloats>
  LS_INLINE void Load(int m0, int r, int n, int lanes, VectorOf<uint32_t, kFloats>& words) const {
    if constexpr (kFloats == 16) {
      VectorOf<uint32_t, 8> low, high;
      LoadRun(m0, r, n, low);
      if (lanes == kFloats) {
        LoadRun(m0, r, n + 8, high);
      } else {
        high = VectorOf<uint32_t, 8>{};
      }
      words = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    } else if constexpr (kFloats == 8) {
      LoadRun(m0, r, n, words);
    } else {
      VectorOf<uint32_t, 8> run;
      LoadRun(m0, r, n & ~7, run);
      words =
          (n & 4) != 0 ? __builtin_shufflevector(run, run, 4, 5, 6, 7) : __builtin_shufflevector(run, run, 0, 1, 2, 3);
    }
  }
  template <int kFloats>
  LS_INLINE void Store(int m0, int r, int n, int lanes, const VectorOf<uint32_t, kFloats>& words) const {
    if constexpr (kFloats == 16) {
      StoreRun(m0, r, n, __builtin_shufflevector(words, words, 0, 1, 2, 3, 4, 5, 6, 7));
      if (lanes == kFloats) StoreRun(m0, r, n + 8, __builtin_shufflevector(words, words, 8, 9, 10, 11, 12, 13, 14, 15));
    } else if constexpr (kFloats == 8) {
      StoreRun(m0, r, n, words);
    } else {
      VectorOf<uint32_t, 8> run;
      LoadRun(m0, r, n & ~7, run);
      std::memcpy(reinterpret_cast<uint32_t*>(&run) + (n & 4), &words, sizeof(words));
      StoreRun(m0, r, n & ~7, run);
    }
  }
  LS_INLINE void Prefetch(int, int) const {}

 private:
  using Four = VectorOf<uint32_t, 4>;

  // The registers of the eight columns that begin at n, even columns first, in a row of the block.
  LS_INLINE uint32_t* const* Registers(int m0, int r, int n) const {
    const int half = (m0 / 8 & 1) | r / 8;
    return tile_.registers + m0 / 16 * tile_.registers_per_thread + (kHalf ? n / 4 + half : n / 2 + 2 * half);
  }
  static LS_INLINE int LaneOf(int m0, int r) { return 4 * (m0 % 8 + r % 8); }

  LS_INLINE void LoadRun(int m0, int r, int n, VectorOf<uint32_t, 8>& run) const {
    uint32_t* const* registers = Registers(m0, r, n);
    Four even, odd;
    std::memcpy(&even, registers[0] + LaneOf(m0, r), sizeof(even));
    if constexpr (kHalf) {
      odd = even >> 16;
      even &= 0xffff;
    } else {
      std::memcpy(&odd, registers[1] + LaneOf(m0, r), sizeof(odd));
    }
    run = __builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7);
  }
  LS_INLINE void StoreRun(int m0, int r, int n, const VectorOf<uint32_t, 8>& run) const {
    uint32_t* const* registers = Registers(m0, r, n);
    Four even = __builtin_shufflevector(run, run, 0, 2, 4, 6);
    const Four odd = __builtin_shufflevector(run, run, 1, 3, 5, 7);
    if constexpr (kHalf) {
      even |= odd << 16;
    } else {
      std::memcpy(registers[1] + LaneOf(m0, r), &odd, sizeof(odd));
    }
    std::memcpy(registers[0] + LaneOf(m0, r), &even, sizeof(even));
  }

  const AccumulatorTile tile_;
};

}  // namespace laneshift::emulator
