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

// Filters with channels of the contraction's N as their elements: no kernel reads them as they lie.
inline bool IsTransposedFilter(const OperandSource& source) {
  return source.kind == SourceKind::kFilter && source.outer_axis == ir::Axis::kK;
}
inline bool PacksFilter(const Contraction& contraction) { return IsTransposedFilter(contraction.b); }

// B as the main kernel reads it. REQUIRES: PacksFilter.
OperandSource PackedFilter(const Contraction& contraction, const Schedule& schedule);

// A copy moves bytes: all types of one size share one kernel.
DataType TypeOfSize(DataType type);

// The kernel that makes the copy, and the tiles that it copies. REQUIRES: PacksFilter.
Result<ir::Program> BuildFilterPack(const Contraction& contraction, const Schedule& schedule,
                                    const target::Target& target);
int64_t TilesOfFilter(const Contraction& contraction, const ir::Program& program);

}  // namespace laneshift::compiler
