// One whole tcgen05.mma: operands fetched from shared and Tensor Memory, summed, written to Tensor Memory.
//
// PlanMma decodes and checks everything that does not depend on memory contents and lists what will be touched;
// ExecuteMma executes it. A scheduler may let time pass in between. A cta_group::2 instruction takes the two CTAs of
// the pair, even rank first.
//
// Thread-safety: ExecuteMma touches only the CTAs given to it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "emulator/units/cta_state.h"
#include "emulator/units/data_path.h"
#include "emulator/units/fused_sum.h"
#include "emulator/units/instruction_descriptor.h"
#include "emulator/units/matrix_descriptor.h"
#include "emulator/units/tensor_memory.h"
#include "emulator/units/zero_columns.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

struct MmaRequest {
  MmaQualifiers qualifiers;
  TensorAddress d;
  std::variant<uint64_t, TensorAddress> a;  // a shared-memory descriptor, or Tensor Memory
  uint64_t b = 0;
  uint32_t instruction = 0;                  // the instruction descriptor
  bool accumulate = true;                    // the enable-input-d predicate
  int scale_d = 0;                           // D is multiplied by 2^-scale_d first
  bool shift_a = false;                      // .ashift
  std::array<uint32_t, 8> disabled_lanes{};  // bit b of word v: lane 32v+b of D is not written (words 4-7: odd CTA)
  std::optional<TensorAddress> metadata;     // sparse A
  TensorAddress scales_a, scales_b;          // block-scaled kinds
  std::optional<uint64_t> zero_columns;      // .ws

  bool operator==(const MmaRequest&) const = default;
};

struct PlannedMma {
  MmaRequest request;
  Tcgen05Descriptor shape;
  DataPathLayout layout = DataPathLayout::kD;
  MatrixDescriptor a, b;                     // a only when it is in shared memory
  OperandTile tile_a, tile_b;                // the part of one CTA
  std::vector<uint32_t> pieces_a, pieces_b;  // of these, in shared memory
  ZeroColumns zero_columns;                  // .ws
  int ctas = 1;
  int64_t multiplies = 0;                             // M x N x dense K, for counters
  std::array<Touched, 2> touched;                     // per CTA
  uint64_t shared_bytes = 0;                          // that all of them read
  std::array<std::array<uint32_t, 4>, 2> disabled{};  // per CTA: bit b of word v is lane 32v+b of D, not written
  std::optional<PlannedShift> shift;                  // .ashift
  Policies policies;
  PolicySet used;
};
// How the elements of an operand of this type lie.
Packing PackingOf(const PlannedMma& plan, ElementType type, bool in_tensor_memory);
// `windows`: the shared windows of the CTA, or of the pair.
Result<PlannedMma> PlanMma(const MmaRequest& request, std::span<const SharedWindow> windows,
                           const Policies& policies = {});

// The first cell of each role that was read without ever having been written.
struct MmaReport {
  struct Unwritten {
    int cta = 0;
    TensorAddress cell;
    const char* role = "";  // "A", "D", "scale A", "scale B", "metadata"
  };
  std::optional<Unwritten> unwritten;
  PolicySet used;  // besides the plan's: what only the contents show
};
// Error: what only the contents can show, e.g. an illegal sparsity code.
Result<MmaReport> ExecuteMma(const PlannedMma& plan, SumArithmetic arithmetic, std::span<const CtaState> ctas,
                             OperandBuffers& buffers);
inline Result<MmaReport> ExecuteMma(const PlannedMma& plan, SumArithmetic arithmetic, std::span<const CtaState> ctas) {
  OperandBuffers buffers;
  return ExecuteMma(plan, arithmetic, ctas, buffers);
}

}  // namespace laneshift::emulator
