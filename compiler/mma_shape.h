// The shape of the matrix instructions that are emitted, which the census of the PTX counts by.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "ir/element_type.h"

namespace laneshift::compiler {

constexpr int kWarpgroupWarps = 4;  // that issue one wgmma together

// K of one tcgen05.mma or wgmma: 32 bytes of a row of A, whatever the type.
inline int MmaK(DataType operand) { return 32 / static_cast<int>(DataTypeBytes(operand)); }

// Instruction descriptor of tcgen05.mma kind::f16 and kind::f8f6f4 with f32 accumulation (PTX ISA, "Instruction
// descriptor").
struct MatrixSide {
  DataType type;
  bool mn_major;
};
inline uint32_t InstructionBits(MatrixSide a, MatrixSide b, int m, int n) {
  const auto code = [](DataType type) { return static_cast<uint32_t>(ir::InfoOf(type).mma_code); };
  return 1u << 4 | code(a.type) << 7 | code(b.type) << 10 | (a.mn_major ? 1u : 0u) << 15 |
         (b.mn_major ? 1u : 0u) << 16 | static_cast<uint32_t>(n >> 3) << 17 | static_cast<uint32_t>(m >> 4) << 24;
}

}  // namespace laneshift::compiler
