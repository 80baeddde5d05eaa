// Packed filters: what a convolution reads instead of the filters that the caller stores, a row of taps for each column
// of its product. A tap begins at a multiple of 16 bytes, which the TMA requires; where threads gather activations, and
// read K as one run over all taps, taps follow each other without gaps.
//
//   gradient of x    a convolution whose filters are the channels of x, and whose channels are those of y: transposed,
//                    the taps in the order in which the contraction counts them (GradientPhase); where a position is a
//                    patch of pixels (GradientPatch) a row for each channel of each, with zeros for taps that miss it
//   merged groups    (Contraction::merged) a matrix of blocks: those on its diagonal are the filters of one group each,
//                    and the others are zero
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// Filters with channels of the contraction's N as their elements. Bulk copies read them in place where the tensor core
// multiplies columns of such rows; else they are packed.
inline bool IsTransposedFilter(const OperandSource& source) {
  return source.kind == SourceKind::kFilter && source.outer_axis == ir::Axis::kK;
}

// Whether bulk copies read transposed filters in place. The tensor core must multiply columns of their rows, which on
// some targets are those of 16-bit types only, and the MMA of A in Tensor Memory is written for B along K. Tiles of
// both operands lie one after the other in a slot: whole swizzle patterns of A come first.
bool ReadsFilterInPlace(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

// Whether only a packed copy of B has the order that the contraction multiplies.
inline bool NeedsFilterPack(const Contraction& contraction) {
  return contraction.b.kind == SourceKind::kFilter && (IsTransposedFilter(contraction.b) || contraction.merged > 1);
}

// B as the main kernel reads it. REQUIRES: NeedsFilterPack().
OperandSource PackedFilter(const Contraction& contraction, const Schedule& schedule);

// A copy moves bytes: all types of one size share one kernel.
DataType TypeOfSize(DataType type);

// The kernel that makes the copy, and the tiles that it copies. REQUIRES: NeedsFilterPack().
Result<ir::Program> BuildFilterPack(const Contraction& contraction, const Schedule& schedule,
                                    const target::Target& target);
int64_t TilesOfFilter(const Contraction& contraction, const ir::Program& program);

}  // namespace laneshift::compiler
