// Packed filters: what a gradient of x reads instead of the filters of the forward convolution.
//
// The gradient is a convolution whose filters are the channels of x, and whose channels are those of y. So the copy has
// a row for each channel of x: of taps, each of the channels of y of the group. The taps come in the order in which the
// contraction counts them (GradientPhase). A tap begins at a multiple of 16 bytes, which the TMA requires; where
// threads gather activations, and read K as one run over all taps, taps follow each other without gaps.
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

// Whether bulk copies read such filters in place. The tensor core must multiply columns of their rows, which on some
// targets are those of 16-bit types only, and the MMA of A in Tensor Memory is written for B along K. Tiles of both
// operands lie one after the other in a slot: whole swizzle patterns of A come first.
bool ReadsFilterInPlace(const Contraction& contraction, const Schedule& schedule, const target::Target& target);

// B as the main kernel reads it. REQUIRES: B is a transposed filter.
OperandSource PackedFilter(const Contraction& contraction, const Schedule& schedule);

// A copy moves bytes: all types of one size share one kernel.
DataType TypeOfSize(DataType type);

// The kernel that makes the copy, and the tiles that it copies. REQUIRES: B is a transposed filter.
Result<ir::Program> BuildFilterPack(const Contraction& contraction, const Schedule& schedule,
                                    const target::Target& target);
int64_t TilesOfFilter(const Contraction& contraction, const ir::Program& program);

}  // namespace laneshift::compiler
