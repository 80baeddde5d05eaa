// The shape of the matrix instructions that are emitted, which the census of the PTX counts by.
#pragma once

#include <cstdint>

#include "laneshift/problem.h"

namespace laneshift::compiler {

constexpr int kMmaK = 16;  // K of one 16-bit tcgen05.mma or wgmma

// Instruction descriptor of tcgen05.mma kind::f16 with f32 accumulation (PTX ISA, "Instruction descriptor").
constexpr uint32_t InstructionBits(DataType type, int m, int n, bool a_mn_major, bool b_mn_major) {
  const uint32_t code = type == DataType::kF16 ? 0 : 1;
  return 1u << 4 | code << 7 | code << 10 | (a_mn_major ? 1u : 0u) << 15 | (b_mn_major ? 1u : 0u) << 16 |
         static_cast<uint32_t>(n >> 3) << 17 | static_cast<uint32_t>(m >> 4) << 24;
}

}  // namespace laneshift::compiler
