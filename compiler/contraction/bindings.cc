#include "compiler/contraction/bindings.h"

#include "base/check.h"
#include "compiler/contraction/conv_geometry.h"
#include "compiler/contraction/im2col_box.h"
#include "compiler/legality/conv_reach.h"
#include "compiler/legality/tma_reach.h"
#include "compiler/plan/packing.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Operand;

constexpr double Number(int64_t value) { return static_cast<double>(value); }

// How a number follows from a problem, one row for each binding that a kind of problem has.
template <typename... Facts>
struct NumberRow {
  Binding binding;
  double (*number)(const Facts&...);
};
template <typename Rows, typename... Facts>
double Find(const Rows& rows, Binding binding, const Facts&... facts) {
  for (const auto& row : rows) {
    if (row.binding == binding) return row.number(facts...);
  }
  LS_CHECK(false, "binding ", ir::InfoOf(binding).name, " is no number of this kind of problem");
}

// clang-format off
constexpr NumberRow<GemmProblem> kGemmNumbers[] = {
    {Binding::kPitchA, [](const GemmProblem& p) { return Number(p.lda); }},
    {Binding::kPitchB, [](const GemmProblem& p) { return Number(p.ldb); }},
    {Binding::kPitchC, [](const GemmProblem& p) { return Number(p.ldc); }},
    {Binding::kPitchD, [](const GemmProblem& p) { return Number(p.ldd); }},
    {Binding::kStrideA, [](const GemmProblem& p) { return Number(p.stride_a); }},
    {Binding::kStrideB, [](const GemmProblem& p) { return Number(p.stride_b); }},
    {Binding::kStrideC, [](const GemmProblem& p) { return Number(p.stride_c); }},
    {Binding::kStrideD, [](const GemmProblem& p) { return Number(p.stride_d); }},
    {Binding::kM, [](const GemmProblem& p) { return Number(p.m); }},
    {Binding::kN, [](const GemmProblem& p) { return Number(p.n); }},
    {Binding::kK, [](const GemmProblem& p) { return Number(p.k); }},
    {Binding::kColumns, [](const GemmProblem& p) { return Number(ir::OutputColumns(p)); }},
    {Binding::kBatch, [](const GemmProblem& p) { return Number(p.batch); }},
    {Binding::kAlpha, [](const GemmProblem& p) { return p.alpha; }},
    {Binding::kBeta, [](const GemmProblem& p) { return p.beta; }},
};

constexpr NumberRow<ConvProblem, ConvGeometry> kConvNumbers[] = {
    {Binding::kPitchA, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.x_pitch.pixel); }},
    {Binding::kPitchB, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.w_pitch.image); }},
    {Binding::kPitchC, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.z_pitch.pixel); }},
    {Binding::kPitchD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.y_pitch.pixel); }},
    {Binding::kRowA, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.x_pitch.row); }},
    {Binding::kRowB, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.w_pitch.row); }},
    {Binding::kRowC, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.z_pitch.row); }},
    {Binding::kRowD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.y_pitch.row); }},
    {Binding::kPlaneA, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.x_pitch.plane); }},
    {Binding::kPlaneB, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.w_pitch.plane); }},
    {Binding::kPlaneC, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.z_pitch.plane); }},
    {Binding::kPlaneD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.y_pitch.plane); }},
    {Binding::kStrideA, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.x_pitch.image); }},
    {Binding::kStrideB, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.w_pitch.pixel); }},
    {Binding::kStrideC, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.z_pitch.image); }},
    {Binding::kStrideD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.y_pitch.image); }},
    {Binding::kM, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.positions); }},
    {Binding::kN, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.filters); }},
    {Binding::kK, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.run); }},
    {Binding::kColumns, [](const ConvProblem& p, const ConvGeometry&) { return Number(ir::OutputColumns(p) / p.groups); }},
    {Binding::kBatch, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.groups); }},
    {Binding::kChannels, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.channels); }},
    {Binding::kFilters, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.k); }},
    {Binding::kWalkQ, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.walk_q); }},
    {Binding::kOutQ, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.output[kWidth]); }},
    {Binding::kOutP, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.output[kHeight]); }},
    {Binding::kOutO, [](const ConvProblem&, const ConvGeometry& g) { return Number(g.output[kDepth]); }},
    {Binding::kInW, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.input[kWidth]); }},
    {Binding::kInH, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.input[kHeight]); }},
    {Binding::kInD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.input[kDepth]); }},
    {Binding::kTapsS, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.filter[kWidth]); }},
    {Binding::kTapsR, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.filter[kHeight]); }},
    {Binding::kTapsT, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.filter[kDepth]); }},
    {Binding::kStepW, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.stride[kWidth]); }},
    {Binding::kStepH, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.stride[kHeight]); }},
    {Binding::kStepD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.stride[kDepth]); }},
    {Binding::kPadW, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.pad_before[kWidth]); }},
    {Binding::kPadH, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.pad_before[kHeight]); }},
    {Binding::kPadD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.pad_before[kDepth]); }},
    {Binding::kSpreadW, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.dilation[kWidth]); }},
    {Binding::kSpreadH, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.dilation[kHeight]); }},
    {Binding::kSpreadD, [](const ConvProblem& p, const ConvGeometry&) { return Number(p.dilation[kDepth]); }},
    {Binding::kAlpha, [](const ConvProblem& p, const ConvGeometry&) { return p.alpha; }},
    {Binding::kBeta, [](const ConvProblem& p, const ConvGeometry&) { return p.beta; }},
};
// clang-format on

// The operand whose tensor the map describes.
Operand OperandOf(Binding map) {
  if (map == Binding::kMapEdge) return Operand::kA;
  if (map == Binding::kMapDRest) return Operand::kD;
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kD}) {
    if (ir::MapOf(operand) == map) return operand;
  }
  LS_CHECK(false, "no operand has the tensor map ", ir::InfoOf(map).name);
}

// The same rows, of which those `distance` apart come in turns: a dimension of two before that of the rows, which then
// begins with those of the first half.
MappedTensor InTurns(MappedTensor tensor, int64_t distance) {
  tensor.dims[1] -= distance;
  tensor.dims.insert(tensor.dims.begin() + 1, 2);
  tensor.strides.insert(tensor.strides.begin(), distance * tensor.strides[0]);
  tensor.box[1] /= 2;
  tensor.box.insert(tensor.box.begin() + 1, 2);
  return tensor;
}

// Dimensions inner, outer, batch. A box is one swizzle span wide and the tile's outer extent high: the copy engine
// fills a tile column by column (ir/layout.h).
MappedTensor GemmTensor(const GemmProblem& problem, const Schedule& schedule, const ir::Param& param) {
  const Operand operand = OperandOf(param.binding);
  const StoredOperand matrix = StoredForProduct(problem, schedule, operand);
  const MappedTensor tensor{.operand = operand,
                            .type = matrix.type,
                            .dims = {matrix.inner, matrix.outer, problem.batch},
                            .strides = {matrix.pitch, matrix.batch_stride},
                            .box = {param.box.ColumnElements(), param.box.outer, 1}};
  const bool turns = operand == Operand::kB && ir::JoinsHalves(problem.epilogue);
  return turns ? InTurns(tensor, matrix.outer / 2) : tensor;
}

// Filters: a run of K, the filters, and what K has beside the run.
MappedTensor FilterTensor(const ConvProblem& problem, const ConvGeometry& geometry, const ir::Param& param) {
  const int64_t runs = geometry.channels * geometry.taps / geometry.run;
  const MappedTensor tensor{.operand = Operand::kB,
                            .type = problem.w,
                            .dims = {geometry.run, problem.k, runs},
                            .strides = {problem.w_pitch.image, problem.w_pitch.pixel},
                            .box = {param.box.ColumnElements(), param.box.outer, 1}};
  return ir::JoinsHalves(problem.epilogue) ? InTurns(tensor, geometry.filters / 2) : tensor;
}

MappedTensor ActivationTensor(const ConvProblem& problem, const ConvGeometry& geometry, Operand operand,
                              const ir::Param& param) {
  const PitchedTensor tensor = PitchedTensorOf(problem, operand);
  const Im2colBox box = operand == Operand::kA ? BoxOfX(problem, geometry) : BoxOfY();
  const size_t dimensions = geometry.planes ? 3 : 2;
  MappedTensor mapped{.operand = operand,
                      .type = tensor.type,
                      .dims = {tensor.channels, tensor.extent[kWidth], tensor.extent[kHeight]},
                      .strides = {tensor.pitch.pixel, tensor.pitch.row},
                      .box = {param.box.ColumnElements(), param.box.outer},
                      .im2col = true};
  if (geometry.planes) {
    mapped.dims.push_back(tensor.extent[kDepth]);
    mapped.strides.push_back(tensor.pitch.plane);
  }
  mapped.dims.push_back(tensor.images);
  mapped.strides.push_back(tensor.pitch.image);
  mapped.element_strides = {1};
  for (size_t d = 0; d < dimensions; ++d) {
    mapped.element_strides.push_back(box.step[d]);
    mapped.lower.push_back(box.lower[d]);
    mapped.upper.push_back(box.upper[d]);
  }
  mapped.element_strides.push_back(1);
  return mapped;
}

}  // namespace

ProblemNumbers::ProblemNumbers(const Problem& problem, const Schedule& schedule) : problem_(problem) {
  if (const auto* conv = std::get_if<ConvProblem>(&problem)) geometry_ = GeometryOf(*conv, schedule);
}

double ProblemNumbers::Of(Binding binding) const {
  if (binding >= ir::EpilogueNumber(0) && binding <= ir::EpilogueNumber(kMaxEpilogueNumbers - 1)) {
    const Epilogue& epilogue = ir::EpilogueOf(problem_);
    return ir::NumbersOf(epilogue)[static_cast<size_t>(binding) - static_cast<size_t>(ir::EpilogueNumber(0))];
  }
  if (geometry_) return Find(kConvNumbers, binding, std::get<ConvProblem>(problem_), *geometry_);
  return Find(kGemmNumbers, binding, std::get<GemmProblem>(problem_));
}

int64_t KBlocksOf(const Problem& problem, const Schedule& schedule) {
  const auto blocks = [&](int64_t run) { return (run + schedule.tile_k - 1) / schedule.tile_k; };
  const auto* conv = std::get_if<ConvProblem>(&problem);
  if (conv == nullptr) return blocks(std::get<GemmProblem>(problem).k);
  const ConvGeometry geometry = GeometryOf(*conv, schedule);
  const int64_t columns = geometry.Reuses() ? conv->filter[kWidth] : 1;  // unrolled in one turn
  return blocks(geometry.run) * (geometry.channels * geometry.taps / geometry.run / columns);
}

std::vector<BoundParam> BindParams(const Problem& problem, const Schedule& schedule, const ir::Program& program) {
  const ProblemNumbers numbers(problem, schedule);
  std::vector<BoundParam> bound;
  for (const ir::Param& param : program.params) {
    bound.push_back({.param = param});
    const ir::ParamKind kind = ir::InfoOf(param.binding).kind;
    if (param.binding == Binding::kWorkspace) bound.back().in_workspace = 0;
    if (kind == ir::ParamKind::kTensorMap) {
      bound.back().tensor = TensorOf(problem, schedule, param);
    } else if (kind != ir::ParamKind::kPointer) {
      bound.back().number = numbers.Of(param.binding);
    }
  }
  return bound;
}

void PlaceInWorkspace(std::vector<BoundParam>& params, Binding base, size_t begin) {
  for (BoundParam& bound : params) {
    const bool mapped = ir::InfoOf(bound.param.binding).kind == ir::ParamKind::kTensorMap;
    if ((mapped ? ir::BaseOf(bound.tensor.operand) : bound.param.binding) == base) bound.in_workspace = begin;
  }
}

MappedTensor TensorOf(const Problem& problem, const Schedule& schedule, const ir::Param& param) {
  const auto* conv = std::get_if<ConvProblem>(&problem);
  if (conv == nullptr) return GemmTensor(std::get<GemmProblem>(problem), schedule, param);
  const ConvGeometry geometry = GeometryOf(*conv, schedule);
  const Operand operand = OperandOf(param.binding);
  if (operand == Operand::kB) return FilterTensor(*conv, geometry, param);
  return ActivationTensor(*conv, geometry, operand, param);
}

}  // namespace laneshift::compiler
