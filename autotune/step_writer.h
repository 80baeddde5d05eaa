// The roles of a tile program as the timed steps of a pipeline.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "autotune/pipeline.h"
#include "compiler/contraction/bindings.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "target/target.h"

namespace laneshift::autotune {

struct WrittenRole {
  PipelineRole role;
  double products = 0;  // MMAs of one tile, with those of iterations that are not listed
};

// `slices`: of each tile along K.
WrittenRole WriteRole(const Problem& problem, const compiler::ProblemNumbers& numbers, const ir::Program& program,
                      const target::Target& target, const ir::Role& role, int64_t slices);

}  // namespace laneshift::autotune
