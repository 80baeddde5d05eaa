#include "measure/peers/cudnn_convolution.h"

#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"

namespace laneshift::measure::cudnn {
namespace {

using base::Cat;

int TypeOf(DataType type) { return ir::InfoOf(type).cudnn; }

// cuDNN's spatial dimensions: two, or three if there is depth. It has no 1-D case.
struct Dimensions {
  explicit Dimensions(const ConvProblem& p)
      : first(p.input[kDepth] == 1 && p.filter[kDepth] == 1 && p.Output()[kDepth] == 1 ? kHeight : kDepth) {}
  std::vector<int64_t> Of(const Spatial& values) const { return {values.begin() + first, values.end()}; }
  // Strides are in the order of extents, which is image, channel, space, whatever the layout: these are NHWC's.
  std::vector<int64_t> Strides(const ConvPitches& p) const {
    std::vector<int64_t> strides = {p.image, 1, p.plane, p.row, p.pixel};
    if (first == kHeight) strides.erase(strides.begin() + 2);
    return strides;
  }
  std::vector<int64_t> Extents(int64_t outer, int64_t inner, const Spatial& extents) const {
    std::vector<int64_t> all = {outer, inner};
    for (int i = first; i <= kWidth; ++i) all.push_back(extents[static_cast<size_t>(i)]);
    return all;
  }
  int first;
};

// A tensor but for its number and its place.
struct TensorShape {
  DataType type;
  std::vector<int64_t> extents, strides;
  int64_t alignment;
};

// x, w and y, and which of them is computed.
struct Operands {
  TensorShape x, w, y;
  int64_t computed;
  const TensorShape& Computed() const { return computed == kIdX ? x : computed == kIdW ? w : y; }
};

// What cuDNN calls the operation of a pass and its attributes, and the tensor that it computes.
struct Operation {
  DescriptorType type;
  Attribute alpha, beta, convolution, x, w, y;
  int64_t computed;
};
constexpr Operation OperationOf(ConvPass pass) {
  switch (pass) {
    case ConvPass::kForward:
      return {kForwardOperation, kForwardAlpha, kForwardBeta, kForwardConvolution,
              kForwardX,         kForwardW,     kForwardY,    kIdY};
    case ConvPass::kDgrad:
      return {kDgradOperation, kDgradAlpha, kDgradBeta, kDgradConvolution, kDgradX, kDgradW, kDgradY, kIdX};
    case ConvPass::kWgrad:
      return {kWgradOperation, kWgradAlpha, kWgradBeta, kWgradConvolution, kWgradX, kWgradW, kWgradY, kIdW};
  }
  __builtin_unreachable();
}

Operands OperandsOf(const ConvProblem& p) {
  const Dimensions d(p);
  return {{p.x, d.Extents(p.n, p.c, p.input), d.Strides(p.x_pitch), p.align_x},
          {p.w, d.Extents(p.k, p.c / p.groups, p.filter), d.Strides(p.w_pitch), p.align_w},
          {p.y, d.Extents(p.n, p.k, p.Output()), d.Strides(p.y_pitch), p.align_y},
          OperationOf(p.pass).computed};
}

// One value for each channel of `whole`.
TensorShape VectorOf(const TensorShape& whole, DataType type) {
  const int64_t channels = whole.extents[1];
  TensorShape vector{type, std::vector<int64_t>(whole.extents.size(), 1),
                     std::vector<int64_t>(whole.extents.size(), channels), ir::InfoOf(type).bits / 8};
  vector.extents[1] = channels;
  vector.strides[1] = 1;
  return vector;
}

// A step of an epilogue as an operation of cuDNN.
struct KnownStep {
  EpilogueKind kind;
  Pointwise mode;
};
constexpr KnownStep kKnownSteps[] = {
    {EpilogueKind::kScaleColumn, kMultiply},
    {EpilogueKind::kBiasColumn, kAdd},
    {EpilogueKind::kResidual, kAdd},
    {EpilogueKind::kMultiply, kMultiply},
    {EpilogueKind::kRelu, kReluForward},
    {EpilogueKind::kLeakyRelu, kReluForward},
    {EpilogueKind::kClamp, kReluForward},
    {EpilogueKind::kGelu, kGeluForward},
    {EpilogueKind::kGeluTanh, kGeluTanhForward},
    {EpilogueKind::kSilu, kSwishForward},
    {EpilogueKind::kSigmoid, kSigmoidForward},
    {EpilogueKind::kTanh, kTanhForward},
    {EpilogueKind::kReluGradient, kReluBackward},
    {EpilogueKind::kGeluGradient, kGeluBackward},
    {EpilogueKind::kGeluTanhGradient, kGeluTanhBackward},
    {EpilogueKind::kSiluGradient, kSwishBackward},
    {EpilogueKind::kSigmoidGradient, kSigmoidBackward},
    {EpilogueKind::kTanhGradient, kTanhBackward},
};

std::optional<Pointwise> ModeOf(EpilogueKind kind) {
  for (const KnownStep& known : kKnownSteps) {
    if (known.kind == kind) return known.mode;
  }
  return std::nullopt;
}

// Adds operations one after the other, each of which reads the result of the one before.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Functions& functions) : f_(functions) {}

  // REQUIRES: the first operation. `more`: others follow.
  Status AddConvolution(const ConvProblem& problem, const Operands& operands, bool more);
  // The bias, the epilogue and beta * z. The last operation's result is the computed tensor.
  Status AddSteps(const ConvProblem& problem, const Operands& operands);
  ConvolutionGraph Take() && { return std::move(graph_); }

 private:
  // A pointwise operation of the last result: an operand with another shape is read from memory.
  struct Step {
    Pointwise mode;
    std::optional<TensorShape> operand{};
    int64_t id = 0;  // of the operand
    float operand_factor = 1;
    std::array<std::optional<float>, 3> clips{};  // of relu: lower, upper, slope below the lower one
  };
  Result<std::vector<Step>> StepsOf(const ConvProblem& problem, const Operands& operands) const;
  Status AddStep(const Step& step, const TensorShape& computed, std::optional<int64_t> id);
  // The index of a tensor among the parts.
  Result<size_t> AddTensor(const TensorShape& shape, int64_t id);
  // The next result: the computed tensor, or one of f32 that is not in memory.
  Result<size_t> AddResult(const TensorShape& computed, std::optional<int64_t> id);

  const Functions& f_;
  ConvolutionGraph graph_;
  size_t last_ = 0;  // the last result
  int64_t virtuals_ = 0;
};

Result<size_t> GraphBuilder::AddTensor(const TensorShape& shape, int64_t id) {
  LS_ASSIGN(CudnnDescriptor tensor, CudnnDescriptor::Create(f_, kTensor));
  LS_TRY(tensor.SetInts(kTensorId, {id}));
  LS_TRY(tensor.SetEnum(kTensorType, kDataType, TypeOf(shape.type)));
  LS_TRY(tensor.SetInts(kTensorExtents, shape.extents));
  LS_TRY(tensor.SetInts(kTensorStrides, shape.strides));
  LS_TRY(tensor.SetInts(kTensorAlignment, {shape.alignment}));
  const bool is_virtual = id >= kIdVirtual;
  if (is_virtual) LS_TRY(tensor.Set(kTensorIsVirtual, kBoolean, 1, &is_virtual));
  LS_TRY(tensor.Finalize());
  if (!is_virtual) graph_.ids.push_back(id);
  graph_.parts.push_back(std::move(tensor));
  return graph_.parts.size() - 1;
}

Result<size_t> GraphBuilder::AddResult(const TensorShape& computed, std::optional<int64_t> id) {
  TensorShape shape = computed;
  if (!id) shape.type = DataType::kF32;
  return AddTensor(shape, id ? *id : kIdVirtual + virtuals_++);
}

Result<CudnnDescriptor> Convolution(const Functions& f, const ConvProblem& p) {
  const Dimensions dimensions(p);
  LS_ASSIGN(CudnnDescriptor convolution, CudnnDescriptor::Create(f, kConvolution));
  LS_TRY(convolution.SetEnum(kConvolutionType, kDataType, kTypeFloat));
  LS_TRY(convolution.SetEnum(kConvolutionModeOf, kConvolutionMode, kCrossCorrelation));
  LS_TRY(convolution.SetInts(kConvolutionSpatialDimensions, {kWidth - dimensions.first + 1}));
  LS_TRY(convolution.SetInts(kConvolutionPrePaddings, dimensions.Of(p.pad_before)));
  LS_TRY(convolution.SetInts(kConvolutionPostPaddings, dimensions.Of(p.pad_after)));
  LS_TRY(convolution.SetInts(kConvolutionStrides, dimensions.Of(p.stride)));
  LS_TRY(convolution.SetInts(kConvolutionDilations, dimensions.Of(p.dilation)));
  LS_TRY(convolution.Finalize());
  return convolution;
}

Status GraphBuilder::AddConvolution(const ConvProblem& p, const Operands& operands, bool more) {
  const Operation of = OperationOf(p.pass);
  LS_ASSIGN(CudnnDescriptor convolution, Convolution(f_, p));
  LS_ASSIGN(CudnnDescriptor operation, CudnnDescriptor::Create(f_, of.type));
  LS_TRY(operation.SetDescriptor(of.convolution, convolution));
  graph_.parts.push_back(std::move(convolution));
  const std::pair<Attribute, int64_t> tensors[] = {{of.x, kIdX}, {of.w, kIdW}, {of.y, kIdY}};
  for (const auto& [attribute, id] : tensors) {
    const TensorShape& shape = id == kIdX ? operands.x : id == kIdW ? operands.w : operands.y;
    size_t tensor = 0;
    if (id == operands.computed) {
      LS_ASSIGN(tensor, AddResult(shape, more ? std::nullopt : std::optional(id)));
      last_ = tensor;
    } else {
      LS_ASSIGN(tensor, AddTensor(shape, id));
    }
    LS_TRY(operation.SetDescriptor(attribute, graph_.parts[tensor]));
  }
  LS_TRY(operation.SetFloat(of.alpha, static_cast<float>(p.alpha)));
  LS_TRY(operation.SetFloat(of.beta, 0));
  LS_TRY(operation.Finalize());
  graph_.operations.push_back(std::move(operation));
  return Ok();
}

Result<std::vector<GraphBuilder::Step>> GraphBuilder::StepsOf(const ConvProblem& p, const Operands& operands) const {
  const TensorShape& whole = operands.Computed();
  std::vector<Step> steps;
  if (p.beta != 0) {
    TensorShape z = whole;
    z.type = p.z;
    z.strides = Dimensions(p).Strides(p.z_pitch);
    z.alignment = p.align_z;
    steps.push_back({.mode = kAdd, .operand = z, .id = kIdZ, .operand_factor = static_cast<float>(p.beta)});
  }
  if (p.bias == ConvBias::kK)
    steps.push_back({.mode = kAdd, .operand = VectorOf(whole, ir::AddendType(whole.type)), .id = kIdBias});
  int64_t operand = kIdOperand;
  for (const EpilogueStep& from : p.epilogue) {
    const auto mode = ModeOf(from.kind);
    if (!mode) return MakeError(ErrorCode::kUnsupported, Cat("cuDNN has no ", ir::PrintStep(from, {'\0', 'k'})));
    Step step{.mode = *mode};
    for (const ir::StepTensor& tensor : ir::TensorsOf(from, whole.type)) {
      step.operand = tensor.operand == ir::StepOperand::kColumnVector ? VectorOf(whole, tensor.type) : whole;
      step.operand->type = tensor.type;
      step.id = operand++;
    }
    const auto number = [&](size_t i) { return static_cast<float>(from.numbers[i]); };
    if (from.kind == EpilogueKind::kLeakyRelu) step.clips = {std::nullopt, std::nullopt, number(0)};
    if (from.kind == EpilogueKind::kClamp) step.clips = {number(0), number(1), std::nullopt};
    steps.push_back(step);
  }
  return steps;
}

Status GraphBuilder::AddStep(const Step& step, const TensorShape& computed, std::optional<int64_t> id) {
  constexpr std::array<Attribute, 3> kClips = {kReluLowerClip, kReluUpperClip, kReluLowerSlope};
  LS_ASSIGN(CudnnDescriptor pointwise, CudnnDescriptor::Create(f_, kPointwise));
  LS_TRY(pointwise.SetEnum(kPointwiseModeOf, kPointwiseMode, step.mode));
  LS_TRY(pointwise.SetEnum(kPointwiseType, kDataType, kTypeFloat));
  for (size_t i = 0; i < kClips.size(); ++i) {
    if (step.clips[i]) LS_TRY(pointwise.SetFloat(kClips[i], *step.clips[i]));
  }
  LS_TRY(pointwise.Finalize());
  LS_ASSIGN(CudnnDescriptor operation, CudnnDescriptor::Create(f_, kPointwiseOperation));
  LS_TRY(operation.SetDescriptor(kPointwiseOf, pointwise));
  graph_.parts.push_back(std::move(pointwise));
  // The derivative of a function takes the gradient of its result and its own input, which is the operand.
  const bool backward = step.mode >= kReluBackward;
  LS_TRY(operation.SetDescriptor(backward ? kPointwiseDy : kPointwiseX, graph_.parts[last_]));
  if (step.operand) {
    LS_ASSIGN(const size_t operand, AddTensor(*step.operand, step.id));
    LS_TRY(operation.SetDescriptor(backward ? kPointwiseX : kPointwiseB, graph_.parts[operand]));
  }
  if (step.operand_factor != 1) LS_TRY(operation.SetFloat(kPointwiseAlpha2, step.operand_factor));
  LS_ASSIGN(last_, AddResult(computed, id));
  LS_TRY(operation.SetDescriptor(backward ? kPointwiseDx : kPointwiseY, graph_.parts[last_]));
  LS_TRY(operation.Finalize());
  graph_.operations.push_back(std::move(operation));
  return Ok();
}

Status GraphBuilder::AddSteps(const ConvProblem& p, const Operands& operands) {
  LS_ASSIGN(const std::vector<Step> steps, StepsOf(p, operands));
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    LS_TRY(AddStep(steps[i], operands.Computed(), last ? std::optional(operands.computed) : std::nullopt));
  }
  return Ok();
}

}  // namespace

bool HasMoreThanProduct(const ConvProblem& p) {
  return p.beta != 0 || p.bias != ConvBias::kNone || !p.epilogue.empty();
}

Result<ConvolutionGraph> DescribeConvolution(const Functions& f, const ConvProblem& p, GraphScope scope) {
  const Operands operands = OperandsOf(p);
  const bool more = scope == GraphScope::kWhole && HasMoreThanProduct(p);
  GraphBuilder builder(f);
  LS_TRY(builder.AddConvolution(p, operands, more));
  if (more) LS_TRY(builder.AddSteps(p, operands));
  return std::move(builder).Take();
}

}  // namespace laneshift::measure::cudnn
