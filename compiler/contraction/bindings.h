// What a launch passes for each parameter of a tile program: numbers and tensors, as facts about the problem.
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

// A tensor as the copy engine shall see it; elements, fastest dimension first. Strides are those of dimensions 1 and
// up.
struct MappedTensor {
  ir::Operand operand{};  // whose base address
  bool scales = false;    // or that of its scale factors
  DataType type{};
  std::vector<int64_t> dims{}, strides{};
  std::vector<int64_t> box{};  // tiled: one per dimension; im2col: channels and positions
  // Im2col alone: width, height[, depth].
  bool im2col = false;
  std::vector<int64_t> element_strides{}, lower{}, upper{};
};

// What a launch passes for one parameter, but for the addresses.
struct BoundParam {
  ir::Param param{};
  double number = 0;      // unless it is a pointer or a tensor map
  MappedTensor tensor{};  // of a tensor map
  // Of a pointer or a tensor map: the byte of the plan's workspace, or else the binding of the caller's address.
  std::optional<size_t> in_workspace{};
  ir::Binding argument = param.binding;
};

// All parameters of the program, in order: once for a plan, so that a launch computes none of it.
std::vector<BoundParam> BindParams(const Problem& problem, const Schedule& schedule, const ir::Program& program);

// The pointer, or what the tensor map of the operand with this base reads, lies in the workspace from byte `begin` on.
void PlaceInWorkspace(std::vector<BoundParam>& params, ir::Binding base, size_t begin);

// REQUIRES: `param` is a tensor map.
MappedTensor TensorOf(const Contraction& contraction, const Schedule& schedule, const ir::Param& param);

}  // namespace laneshift::compiler
