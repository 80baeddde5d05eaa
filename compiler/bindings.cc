#include "compiler/bindings.h"

#include "base/check.h"
#include "compiler/conv_geometry.h"
#include "compiler/conv_reach.h"
#include "compiler/im2col_box.h"
#include "compiler/tma_reach.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Operand;

double Number(int64_t value) { return static_cast<double>(value); }

double GemmNumber(const GemmProblem& p, Binding binding) {
  // clang-format off
  switch (binding) {
    case Binding::kPitchA: return Number(p.lda);
    case Binding::kPitchB: return Number(p.ldb);
    case Binding::kPitchC: return Number(p.ldc);
    case Binding::kPitchD: return Number(p.ldd);
    case Binding::kStrideA: return Number(p.stride_a);
    case Binding::kStrideB: return Number(p.stride_b);
    case Binding::kStrideC: return Number(p.stride_c);
    case Binding::kStrideD: return Number(p.stride_d);
    case Binding::kM: return Number(p.m);
    case Binding::kN: return Number(p.n);
    case Binding::kK: return Number(p.k);
    case Binding::kBatch: return Number(p.batch);
    case Binding::kAlpha: return p.alpha;
    case Binding::kBeta: return p.beta;
    default: break;  // of convolutions, or no number
  }
  // clang-format on
  LS_CHECK(false, "binding ", ir::InfoOf(binding).name, " is no number of a GEMM");
}

double ConvNumber(const ConvProblem& p, const ConvGeometry& g, Binding binding) {
  // clang-format off
  switch (binding) {
    case Binding::kPitchA: return Number(p.x_pitch.pixel);
    case Binding::kPitchB: return Number(p.w_pitch.image);
    case Binding::kPitchC: return Number(p.z_pitch.pixel);
    case Binding::kPitchD: return Number(p.y_pitch.pixel);
    case Binding::kRowA: return Number(p.x_pitch.row);
    case Binding::kRowC: return Number(p.z_pitch.row);
    case Binding::kRowD: return Number(p.y_pitch.row);
    case Binding::kPlaneA: return Number(p.x_pitch.plane);
    case Binding::kPlaneC: return Number(p.z_pitch.plane);
    case Binding::kPlaneD: return Number(p.y_pitch.plane);
    case Binding::kStrideA: return Number(p.x_pitch.image);
    case Binding::kStrideB: return Number(p.w_pitch.pixel);
    case Binding::kStrideC: return Number(p.z_pitch.image);
    case Binding::kStrideD: return Number(p.y_pitch.image);
    case Binding::kM: return Number(g.positions);
    case Binding::kN: return Number(g.filters);
    case Binding::kK: return Number(g.run);
    case Binding::kBatch: return Number(p.groups);
    case Binding::kChannels: return Number(g.channels);
    case Binding::kFilters: return Number(p.k);
    case Binding::kWalkQ: return Number(g.walk_q);
    case Binding::kOutQ: return Number(g.output[kWidth]);
    case Binding::kOutP: return Number(g.output[kHeight]);
    case Binding::kOutO: return Number(g.output[kDepth]);
    case Binding::kInW: return Number(p.input[kWidth]);
    case Binding::kInH: return Number(p.input[kHeight]);
    case Binding::kInD: return Number(p.input[kDepth]);
    case Binding::kTapsS: return Number(p.filter[kWidth]);
    case Binding::kTapsR: return Number(p.filter[kHeight]);
    case Binding::kTapsT: return Number(p.filter[kDepth]);
    case Binding::kStepW: return Number(p.stride[kWidth]);
    case Binding::kStepH: return Number(p.stride[kHeight]);
    case Binding::kStepD: return Number(p.stride[kDepth]);
    case Binding::kPadW: return Number(p.pad_before[kWidth]);
    case Binding::kPadH: return Number(p.pad_before[kHeight]);
    case Binding::kPadD: return Number(p.pad_before[kDepth]);
    case Binding::kSpreadW: return Number(p.dilation[kWidth]);
    case Binding::kSpreadH: return Number(p.dilation[kHeight]);
    case Binding::kSpreadD: return Number(p.dilation[kDepth]);
    case Binding::kAlpha: return p.alpha;
    case Binding::kBeta: return p.beta;
    default: break;  // no number
  }
  // clang-format on
  LS_CHECK(false, "binding ", ir::InfoOf(binding).name, " is no number of a convolution");
}

// The operand whose tensor the map describes.
Operand OperandOf(Binding map) {
  if (map == Binding::kMapEdge) return Operand::kA;
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kD}) {
    if (ir::MapOf(operand) == map) return operand;
  }
  LS_CHECK(false, "no operand has the tensor map ", ir::InfoOf(map).name);
}

// Dimensions inner, outer, batch. A box is one swizzle span wide and the tile's outer extent high: the copy engine
// fills a tile column by column (ir/layout.h).
MappedTensor GemmTensor(const GemmProblem& problem, const ir::Param& param) {
  const Operand operand = OperandOf(param.binding);
  const StoredOperand matrix = Stored(problem, operand);
  return {.operand = operand,
          .type = matrix.type,
          .dims = {matrix.inner, matrix.outer, problem.batch},
          .strides = {matrix.pitch, matrix.batch_stride},
          .box = {param.box.ColumnElements(), param.box.outer, 1}};
}

// Filters: a run of K, the filters, and what K has beside the run.
MappedTensor FilterTensor(const ConvProblem& problem, const ConvGeometry& geometry, const ir::Param& param) {
  const int64_t runs = geometry.channels * geometry.taps / geometry.run;
  return {.operand = Operand::kB,
          .type = problem.w,
          .dims = {geometry.run, problem.k, runs},
          .strides = {problem.w_pitch.image, problem.w_pitch.pixel},
          .box = {param.box.ColumnElements(), param.box.outer, 1}};
}

MappedTensor ActivationTensor(const ConvProblem& problem, const ConvGeometry& geometry, Operand operand,
                              const ir::Param& param) {
  const StoredTensor tensor = Stored(problem, operand);
  const Im2colBox box = operand == Operand::kA ? BoxOfX(problem, geometry) : BoxOfY(geometry);
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

double NumberOf(const Problem& problem, const Schedule& schedule, Binding binding) {
  if (const auto* conv = std::get_if<ConvProblem>(&problem)) {
    return ConvNumber(*conv, GeometryOf(*conv, schedule), binding);
  }
  return GemmNumber(std::get<GemmProblem>(problem), binding);
}

MappedTensor TensorOf(const Problem& problem, const Schedule& schedule, const ir::Param& param) {
  const auto* conv = std::get_if<ConvProblem>(&problem);
  if (conv == nullptr) return GemmTensor(std::get<GemmProblem>(problem), param);
  const ConvGeometry geometry = GeometryOf(*conv, schedule);
  const Operand operand = OperandOf(param.binding);
  if (operand == Operand::kB) return FilterTensor(*conv, geometry, param);
  return ActivationTensor(*conv, geometry, operand, param);
}

}  // namespace laneshift::compiler
