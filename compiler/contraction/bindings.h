// What a launch passes for each parameter of a tile program: numbers and tensors, as properties of the problem.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "compiler/contraction/contraction.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

// The sizes, pitches, strides and scales of one problem.
class ProblemNumbers {
 public:
  // REQUIRES: `problem` outlives the numbers.
  ProblemNumbers(const Problem& problem, const Schedule& schedule) : contraction_(ContractionOf(problem, schedule)) {}
  explicit ProblemNumbers(Contraction contraction) : contraction_(std::move(contraction)) {}
  // Sizes and pitches are below 2^40: exact as doubles. REQUIRES: the binding is a number of this contraction.
  double Of(ir::Binding binding) const;
  int64_t SizeOf(ir::Binding binding) const { return static_cast<int64_t>(Of(binding)); }
  const Contraction& contraction() const { return contraction_; }

 private:
  Contraction contraction_;
};

// A tensor as the copy engine sees it; elements, fastest dimension first. Strides are those of dimensions 1 and
// up.
struct MappedTensor {
  ir::Operand operand{};             // whose base address is used,
  ir::OperandComponent component{};  // of this component
  DataType type{};
  std::vector<int64_t> dims{}, strides{};
  std::vector<int64_t> box{};  // tiled: one per dimension; im2col: channels and positions
  // Only im2col: width, height[, depth].
  bool im2col = false;
  std::vector<int64_t> element_strides{}, lower{}, upper{};
};

// What a launch passes for one parameter, except for addresses.
struct BoundParam {
  ir::Param param{};
  double number = 0;      // unless it is a pointer or a tensor map
  MappedTensor tensor{};  // of a tensor map
  // Of a pointer or a tensor map: its byte offset in the plan's workspace, or the binding of the caller's address.
  std::optional<size_t> in_workspace{};
  ir::Binding argument = param.binding;
  int64_t offset = 0;  // bytes from the caller's address
};

// All parameters of the program, in order: computed once for a plan, so that a launch computes none of it.
std::vector<BoundParam> BindParams(const Contraction& contraction, const Schedule& schedule,
                                   const ir::Program& program);
std::vector<BoundParam> BindParams(const Problem& problem, const Schedule& schedule, const ir::Program& program);

// The pointer, or the tensor that the tensor map of the operand with this base reads, is in the workspace at `begin`.
void PlaceInWorkspace(std::vector<BoundParam>& params, ir::Binding base, size_t begin);

// The tensor that the tensor map of this component of the operand reads is in the workspace at `begin`.
void PlaceInWorkspace(std::vector<BoundParam>& params, ir::Operand operand, ir::OperandComponent component,
                      size_t begin);

// REQUIRES: `param` is a tensor map.
MappedTensor TensorOf(const Contraction& contraction, const Schedule& schedule, const ir::Param& param);

}  // namespace laneshift::compiler
