// What the products of CUDA cores take, as steps of a pipeline: depthwise convolutions, the gradients of their filters,
// and matrices times a few vectors.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "autotune/pipeline.h"
#include "compiler/contraction/bindings.h"
#include "ir/program.h"

namespace laneshift::autotune {

// Warps divide the fragments of a tile, and pass over it as often as there are more of these.
int FragmentPasses(const ir::DepthwiseAttrs& attrs, const ir::Program& program, int warps);

// Of `elements` outputs, those of one pass.
Step DepthwiseStep(const ir::DepthwiseAttrs& attrs, const ir::Program& program, const compiler::ProblemNumbers& numbers,
                   int warps, double elements);

// Of one box: `positions` of the gradient, and the pixels under them.
Step FilterGradientStep(const ir::DepthwiseGradientAttrs& attrs, const ir::Program& program, int64_t positions,
                        int warps);

// The reads of a matrix and its vectors, and the products; `depth` elements of K.
std::array<Step, 2> GemvSteps(const ir::GemvAttrs& attrs, const ir::Program& program, int64_t depth, int warps);

}  // namespace laneshift::autotune
