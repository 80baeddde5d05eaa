// What the TMA can reach: the rules of tensor maps, as facts about a problem.
//
// Source: CUDA driver API, cuTensorMapEncodeTiled; stores clip a row only at the next multiple of 16 bytes (measured on
// an H200), so an output row must be whole 16-byte pieces. Thread-safety: pure functions.
#pragma once

#include "ir/program.h"
#include "laneshift/problem.h"
#include "target/target.h"

namespace laneshift::compiler {

constexpr int64_t kTmaUnit = 16;  // bytes, of which base addresses and strides of a tensor map are multiples

// A stored operand of a GEMM: `outer` rows of `inner` contiguous elements.
struct StoredOperand {
  DataType type;
  ir::Axis outer_axis, inner_axis;
  int64_t outer, inner, pitch, batch_stride, align;
};
StoredOperand Stored(const GemmProblem& problem, ir::Operand operand);

// Ok, or kUnsupported with the rule that the operand breaks.
Status TmaReaches(const GemmProblem& problem, ir::Operand operand);

// Whether the target's tensor core reads the operand along K alone, though it is stored along the other axis.
bool Transposes(const GemmProblem& problem, ir::Operand operand, const target::Target& target);

// The widest access in elements, at most `limit`, for which every row start, row end and matrix of the operand is
// aligned: a run of so many columns at a multiple of it lies wholly inside or wholly outside.
int AccessWidth(const GemmProblem& problem, ir::Operand operand, int limit);

}  // namespace laneshift::compiler
