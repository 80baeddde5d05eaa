// One wgmma.mma_async: D (64 x N, in the registers of a warpgroup) = A x B + D.
//
// Planned first (forms checked, shared ranges known), executed later, as tcgen05_mma.h.
//
// Thread-safety: pure but for the registers it is given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emulator/units/cta_state.h"
#include "emulator/units/fused_sum.h"
#include "emulator/units/matrix_descriptor.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

struct WgmmaRequest {
  int n = 8, k = 16;  // of the shape qualifier m64nNkK
  ElementType a = ElementType::kF16, b = ElementType::kF16;
  AccumulatorType d = AccumulatorType::kF32;
  std::optional<uint64_t> a_descriptor;  // nothing: A comes from registers
  uint64_t b_descriptor = 0;
  bool accumulate = true;                         // scale-d
  bool negate_a = false, negate_b = false;        // scale-a, scale-b = -1
  bool transpose_a = false, transpose_b = false;  // trans-a, trans-b = 1: MN-major
  bool saturate = false;                          // .satfinite
  std::optional<int> selector;                    // .sp: which threads of a quad hold the metadata; k is the dense K

  bool operator==(const WgmmaRequest&) const = default;
};

struct PlannedWgmma {
  WgmmaRequest request;
  MatrixDescriptor a, b;
  std::vector<uint32_t> pieces_a, pieces_b;  // PieceOffsets of them
  std::vector<SharedRange> shared_reads;
  std::shared_ptr<const GranuleWords> granules;  // the same
  uint64_t shared_bytes = 0;
  int d_registers = 0;  // per thread
  int64_t multiplies = 0;
};
Result<PlannedWgmma> PlanWgmma(const WgmmaRequest& request, const SharedWindow& window);

// The registers of four warps: d[warp * d_registers + r] and a[warp * 4 + r] point to the 32 lanes of register r.
// `a` is empty when A is in shared memory; `metadata` has the four warps' register of a sparse instruction. Error: a
// sparsity code that is not legal.
Status ExecuteWgmma(const PlannedWgmma& plan, SumArithmetic arithmetic, const SharedWindow& window,
                    std::span<const uint32_t* const> a, std::span<uint32_t* const> d,
                    std::span<const uint32_t* const> metadata, OperandBuffers& buffers);
inline Status ExecuteWgmma(const PlannedWgmma& plan, SumArithmetic arithmetic, const SharedWindow& window,
                           std::span<const uint32_t* const> a, std::span<uint32_t* const> d,
                           std::span<const uint32_t* const> metadata = {}) {
  OperandBuffers buffers;
  return ExecuteWgmma(plan, arithmetic, window, a, d, metadata, buffers);
}

// The thread of the warpgroup and the lowest bit of its register that hold the code of a chunk of a row (four elements
// of K; two of tf32), as an H200 reads them.
struct SparseCodePosition {
  int thread = 0, bit = 0;
};
SparseCodePosition WgmmaCodePosition(ElementType type, int selector, int row, int chunk);

// Row and column of element `index` of a thread's accumulator fragment (f16: two elements per register, low half
// first).
struct FragmentPosition {
  int row = 0, column = 0;
};
FragmentPosition AccumulatorPosition(int thread, int index);
// Row and byte column of byte `byte` of register `reg` of a thread's A fragment (4 registers).
FragmentPosition OperandPosition(ElementType type, int thread, int reg, int byte);

}  // namespace laneshift::emulator
