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

struct WrittenPart {
  int64_t parts = 1;       // of each tile along K
  int64_t iterations = 0;  // of each loop over K that are listed
};
WrittenRole WriteRole(const Problem& problem, const compiler::ProblemNumbers& numbers, const ir::Program& program,
                      const target::Target& target, const ir::Role& role, const WrittenPart& part);

}  // namespace laneshift::autotune
