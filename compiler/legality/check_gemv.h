// The rules of reuse=direct for products of matrices: a matrix times a few vectors, on CUDA cores
// (compiler/build/build_gemv.cc). With rows=n the vectors are rows of A, with rows=m columns of B.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "ir/op.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

inline constexpr int kGemvVectors[] = {1, 2, 4, 8};
inline constexpr int kGemvLines[] = {16, 32, 64};  // of a tile: 16 for each warp of the epilogue
inline constexpr int kGemvMostStages = 8;          // blocks of K in flight
inline constexpr int kGemvMostLines = 8;           // of a warp
inline constexpr int kGemvMostSums = 32;           // of these: one for each lane in the end

// Whether threads can multiply these operands: kUnsupported names the rule and what would be right.
Status CheckGemvOperands(const Contraction& contraction, const target::Target& target);
// The same of the tile, where CheckGemvOperands holds.
Status CheckGemvTile(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

// Elements of K that a warp reads at once, of which a block has as many as warps divide it.
int GemvBlock(const Contraction& contraction);
// How the warps of a tile multiply. REQUIRES: both checks hold.
ir::GemvAttrs GemvOf(const Contraction& contraction, const Schedule& schedule);

}  // namespace laneshift::compiler
