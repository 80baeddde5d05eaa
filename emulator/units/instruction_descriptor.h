// The 32-bit instruction descriptor of tcgen05.mma, decoded and validated for a kind.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "emulator/units/element.h"
#include "emulator/units/policies.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

enum class Tcgen05Kind : uint8_t { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };
std::string_view NameOf(Tcgen05Kind kind);
inline bool IsBlockScaled(Tcgen05Kind kind) {
  return kind == Tcgen05Kind::kMxf8f6f4 || kind == Tcgen05Kind::kMxf4 || kind == Tcgen05Kind::kMxf4nvf4;
}
enum class SparseForm : uint8_t { kDense, kSparse };
enum class WeightMode : uint8_t { kOrdinary, kWeightStationary };  // tcgen05.mma, tcgen05.mma.ws

// The qualifiers of the opcode that decide what a descriptor may say.
struct MmaQualifiers {
  Tcgen05Kind kind = Tcgen05Kind::kF16;
  int cta_group = 1;
  SparseForm sparsity = SparseForm::kDense;
  WeightMode weight_mode = WeightMode::kOrdinary;
  int scale_vector =
      0;  // scale factors per row: 1, 2, 4 for .scale_vec::NX (block16 = 4, block32 = 1 or 2); 0: the default
  bool long_rows = false;  // the device has K = 96 of the 4-bit kinds, and absolute leading offsets (sm_103a)

  bool operator==(const MmaQualifiers&) const = default;
};

struct Tcgen05Descriptor {
  ElementType a = ElementType::kF16, b = ElementType::kF16;
  AccumulatorType d = AccumulatorType::kF32;
  ScaleType scale = ScaleType::kUe8m0;  // block-scaled kinds
  int m = 0, n = 0, k = 0;              // of the instruction; k is the dense K
  int scale_factors = 0;                // per row; 0 for kinds without
  int scale_a_id = 0, scale_b_id = 0;
  int sparsity_selector = 0;
  int max_column_shift = 0;  // .ws: 0, 8, 16 or 32
  bool saturate = false, negate_a = false, negate_b = false;
  bool transpose_a = false, transpose_b = false;  // M-major A, N-major B

  // Rows of 48 bytes of K; otherwise 32.
  bool LongRows() const { return k == 96; }
};
// Columns of Tensor Memory from a cell of four scale factors of a row to the next four, for `count` rows or columns:
// those of whole blocks of 128 (as CUTLASS lays them out for K = 96).
inline int ScaleCellStep(int count) { return (count + 127) / 128 * 4; }

Result<Tcgen05Descriptor> DecodeInstructionDescriptor(const MmaQualifiers& qualifiers, uint32_t bits,
                                                      const Policies& policies = {});
// The policies that the meaning of a descriptor which was accepted depends on.
PolicySet PoliciesOf(const MmaQualifiers& qualifiers, const Tcgen05Descriptor& descriptor);

}  // namespace laneshift::emulator
