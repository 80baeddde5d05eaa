// What the TMA and vector accesses can reach of a convolution's tensors.
//
// Source: CUDA driver API, cuTensorMapEncodeIm2col and cuTensorMapEncodeTiled; PTX ISA, im2col mode (offsets); stores
// clip channels only at the next multiple of 16 bytes (measured on an H200). Thread-safety: pure functions.
#pragma once

#include "compiler/contraction/conv_geometry.h"
#include "ir/program.h"
#include "laneshift/problem.h"

namespace laneshift::compiler {

// A tensor of a convolution as memory holds it.
struct PitchedTensor {
  std::string_view name;  // "x", "w", "z", "y"
  DataType type;
  int64_t channels;  // contiguous, of all groups; of w: of one group
  Spatial extent;    // depth, height, width; of w: the taps
  int64_t images;    // of w: filters
  ConvPitches pitch;
  int64_t align;
};
PitchedTensor PitchedTensorOf(const ConvProblem& problem, ir::Operand operand);

// Ok, or kUnsupported with the rule that the operand breaks under this schedule.
Status TmaReaches(const ConvProblem& problem, const ConvGeometry& geometry, const Schedule& schedule,
                  ir::Operand operand);
// Whether the taps of a filter follow each other at one distance, and with `dense` without gaps.
bool TapsAreEven(const ConvProblem& problem, bool dense);

// As compiler/legality/tma_reach.h: the widest access in elements, at most `limit`, to runs of the operand's channels.
int AccessWidth(const ConvProblem& problem, ir::Operand operand, int limit);
// Elements of one access to x when threads gather it: 8 where every run of 8 channels is one aligned access, else 1.
int GatherWidth(const ConvProblem& problem);

}  // namespace laneshift::compiler
