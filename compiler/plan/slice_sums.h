// The kernel after the main kernel that adds the partial sums of split-K slices, where tiles are few and slices many:
// gradients of filters. Where the last CTA of a tile adds them, one SM reads what all SMs have stored; here all SMs do.
// The grid, and where tiles and slices are, is that of the main kernel: each CTA of a tile has some pieces of it, adds
// the sums of all slices, always in the same order, and stores them as any epilogue does.
//
// Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// Lowered, with its storage. REQUIRES: the contraction adds its slices apart.
Result<ir::Program> BuildSliceSums(const Contraction& contraction, const Schedule& schedule,
                                   const target::Target& target);

}  // namespace laneshift::compiler
