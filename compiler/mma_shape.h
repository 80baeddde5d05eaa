// The shape of the matrix instructions that are emitted, which the census of the PTX counts by.
#pragma once

namespace laneshift::compiler {

constexpr int kMmaK = 16;  // K of one 16-bit tcgen05.mma or wgmma

}  // namespace laneshift::compiler
