#include "ir/stored_tensor.h"

#include "base/check.h"
#include "base/text.h"
#include "ir/conv_problem.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"

namespace laneshift::ir {
namespace {

StoredTensor Vector(DataType type, int64_t length) {
  StoredTensor vector{.type = type};
  vector.extents.back() = length;
  return vector;
}

// `outer` images or filters of `extents` pixels or taps. Dimensions that the convolution does not have are not counted.
StoredTensor Images(const ConvProblem& p, DataType type, int64_t outer, const Spatial& extents, int64_t inner,
                    const ConvPitches& pitches) {
  const bool volume = p.input[kDepth] != 1 || p.filter[kDepth] != 1 || p.Output()[kDepth] != 1;
  const bool plane = volume || p.input[kHeight] != 1 || p.filter[kHeight] != 1 || p.Output()[kHeight] != 1;
  return {.type = type,
          .extents = {outer, extents[kDepth], extents[kHeight], extents[kWidth], inner},
          .pitches = {pitches.image, pitches.plane, pitches.row, pitches.pixel, 1},
          .rank = volume  ? 5
                  : plane ? 4
                          : 3};
}

}  // namespace

StoredTensor StoredTensor::Matrices(DataType type, int64_t batch, int64_t outer, int64_t inner, int64_t pitch,
                                    int64_t stride) {
  return {.type = type,
          .extents = {batch, 1, 1, outer, inner},
          .pitches = {stride, 0, 0, pitch, 1},
          .rank = batch == 1 ? 2 : 3};
}

int64_t StoredTensor::RowStart(int64_t row) const {
  int64_t start = 0;
  for (size_t i = kDimensions - 1; i-- > 0;) {
    start += row % extents[i] * pitches[i];
    row /= extents[i];
  }
  return start;
}

size_t StoredTensor::Bytes() const {
  return static_cast<size_t>((RowStart(Rows() - 1) + Inner()) * DataTypeBytes(type));
}

std::string StoredTensor::PrintIndex(int64_t element) const {
  std::array<int64_t, kDimensions> index;
  for (size_t i = kDimensions; i-- > 0;) {
    index[i] = element % extents[i];
    element /= extents[i];
  }
  std::string text;
  for (size_t i = 0; i < kDimensions; ++i) {
    if (Means(i)) text += base::Cat(text.empty() ? "(" : ", ", index[i]);
  }
  return text + ")";
}

std::vector<int64_t> StoredTensor::Shape() const {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < kDimensions; ++i) {
    if (Means(i)) shape.push_back(extents[i]);
  }
  return shape;
}

int64_t OutputColumns(const GemmProblem& p) { return IsGated(p.epilogue) ? p.n / 2 : p.n; }
int64_t OutputColumns(const ConvProblem& p) {
  if (p.pass == ConvPass::kDgrad) return p.c;
  if (p.pass == ConvPass::kWgrad) return p.c / p.groups;
  return IsGated(p.epilogue) ? p.k / 2 : p.k;
}

StoredTensor ScaleBlocks(int64_t batch, int64_t rows, int64_t k) {
  const int64_t lines = ScaleBlock::Count(ScaleBlock::Count(k, kMxRun), ScaleBlock::kFactors) * ScaleBlock::kLines;
  return StoredTensor::Matrices(DataType::kUe8m0, batch * ScaleBlock::Count(rows, ScaleBlock::kRows), lines,
                                ScaleBlock::kLineBytes, ScaleBlock::kLineBytes, lines * ScaleBlock::kLineBytes);
}

StoredTensor Stored(const GemmProblem& p, OperandRole role) {
  const bool a_k = p.a_major == Major::kK, b_k = p.b_major == Major::kK;
  switch (role) {
    case OperandRole::kA:
      return StoredTensor::Matrices(p.a, p.batch, a_k ? p.m : p.k, a_k ? p.k : p.m, p.lda, p.stride_a);
    case OperandRole::kB:
      return StoredTensor::Matrices(p.b, p.batch, b_k ? p.n : p.k, b_k ? p.k : p.n, p.ldb, p.stride_b);
    case OperandRole::kC:
      return StoredTensor::Matrices(p.c, p.batch, p.m, p.n, p.ldc, p.stride_c);
    case OperandRole::kD:
      return StoredTensor::Matrices(p.d, p.batch, p.m, OutputColumns(p), p.ldd, p.stride_d);
    case OperandRole::kBias:
      return Vector(AddendType(p.d), p.bias == BiasAxis::kM ? p.m : p.n);
    case OperandRole::kScaleA:
      if (p.scale == Scaling::kMx) return ScaleBlocks(p.batch, p.m, p.k);
      if (p.scale != Scaling::kBlock) return Vector(DataType::kF32, 1);
      return StoredTensor::Matrices(DataType::kF32, p.batch, ScaleRuns(p.k), p.m, p.m, ScaleRuns(p.k) * p.m);
    case OperandRole::kScaleB:
      if (p.scale == Scaling::kMx) return ScaleBlocks(p.batch, p.n, p.k);
      if (p.scale != Scaling::kBlock) return Vector(DataType::kF32, 1);
      return StoredTensor::Matrices(DataType::kF32, p.batch, ScaleRuns(p.n), ScaleRuns(p.k), ScaleRuns(p.k),
                                    ScaleRuns(p.n) * ScaleRuns(p.k));
    case OperandRole::kScaleD:
      return Vector(DataType::kF32, 1);
  }
  LS_CHECK(false, "unknown role ", static_cast<int>(role));
}

StoredTensor Stored(const ConvProblem& p, OperandRole role) {
  switch (role) {
    case OperandRole::kA:
    case OperandRole::kB:
    case OperandRole::kC:
    case OperandRole::kD: {
      const ConvOperand operand = OperandsOf(p.pass)[static_cast<size_t>(role)];
      const ConvTensor tensor = ConvTensors(p)[static_cast<size_t>(operand)];
      return Images(p, p.*FieldsOf(operand).type, tensor.outer, tensor.extents, tensor.inner, p.*tensor.pitches);
    }
    case OperandRole::kBias:
      return Vector(AddendType(ResultTypeOf(p)), p.k);
    case OperandRole::kScaleA:
    case OperandRole::kScaleB:
    case OperandRole::kScaleD:
      return Vector(DataType::kF32, 1);
  }
  LS_CHECK(false, "unknown role ", static_cast<int>(role));
}

StoredTensor Stored(const Problem& problem, OperandRole role) {
  return std::visit([&](const auto& kind) { return Stored(kind, role); }, problem);
}

namespace {

// The operand of a step; `rows` and `columns` are those of the matrix that the step processes.
StoredTensor TensorOf(StepOperand operand, DataType type, const StoredTensor& output, int64_t rows, int64_t columns) {
  switch (operand) {
    case StepOperand::kRowVector:
    case StepOperand::kRowReduction:
      return Vector(type, rows);
    case StepOperand::kColumnVector:
    case StepOperand::kColumnReduction:
      return Vector(type, columns);
    case StepOperand::kReduction:
      return Vector(type, 1);
    case StepOperand::kBlocks:
      return StoredTensor::Matrices(type, 1, ScaleRuns(rows), ScaleRuns(columns), ScaleRuns(columns),
                                    ScaleRuns(rows) * ScaleRuns(columns));
    case StepOperand::kNone:
    case StepOperand::kMatrix:
    case StepOperand::kOutput:
    case StepOperand::kTable:  // has another length
      break;
  }
  StoredTensor tensor = output;
  tensor.type = type;
  return tensor;
}

}  // namespace

std::vector<EpilogueTensor> EpilogueTensors(const Problem& problem) {
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  const Epilogue& epilogue = gemm != nullptr ? gemm->epilogue : std::get<ConvProblem>(problem).epilogue;
  const AxisLetters letters = gemm != nullptr ? kGemmLetters : LettersOf(std::get<ConvProblem>(problem).pass);
  const StoredTensor output = Stored(problem, OperandRole::kD);
  const auto columns_of_b = [](const auto& kind) {
    const int64_t columns = OutputColumns(kind);
    return IsGated(kind.epilogue) ? 2 * columns : columns;
  };
  const int64_t products = std::visit(columns_of_b, problem);  // columns before the gated linear unit
  const int64_t rows = gemm != nullptr ? gemm->m : output.Rows();
  const size_t gate = GateOf(epilogue);
  std::vector<EpilogueTensor> tensors;
  for (size_t i = 0; i < epilogue.size(); ++i) {
    const EpilogueStep& step = epilogue[i];
    const int64_t columns = i < gate ? products : output.Inner();
    for (const StepTensor& own : TensorsOf(step, output.type)) {
      const std::string name = step.function ? step.function->name : PrintStep(step, letters);
      const bool table = own.operand == StepOperand::kTable;
      tensors.push_back(
          {.name = base::Cat("epilogue[", tensors.size(), "] (", name, ")"),
           .tensor = table ? Vector(own.type, own.count) : TensorOf(own.operand, own.type, output, rows, columns),
           .written = own.operand == StepOperand::kOutput,
           .reduction = IsReduction(own.operand),
           .matrix = IsMatrix(own.operand)});
    }
  }
  return tensors;
}

bool Uses(const Problem& problem, OperandRole role) {
  if (role == OperandRole::kC) return std::visit([](const auto& kind) { return kind.beta != 0; }, problem);
  if (IsScale(role)) {
    const Scaling scale = std::visit([](const auto& kind) { return kind.scale; }, problem);
    return scale != Scaling::kNone && (role != OperandRole::kScaleD || IsFloat8(Stored(problem, OperandRole::kD).type));
  }
  if (role != OperandRole::kBias) return true;
  if (const GemmProblem* gemm = std::get_if<GemmProblem>(&problem)) return gemm->bias != BiasAxis::kNone;
  return std::get<ConvProblem>(problem).bias != ConvBias::kNone;
}

int64_t AlignmentOf(const Problem& problem, OperandRole role) {
  constexpr size_t kAligned = 4;
  static constexpr int64_t GemmProblem::*kGemm[kAligned] = {&GemmProblem::align_a, &GemmProblem::align_b,
                                                            &GemmProblem::align_c, &GemmProblem::align_d};
  const auto index = static_cast<size_t>(role);
  if (index >= kAligned) return 0;
  if (const GemmProblem* gemm = std::get_if<GemmProblem>(&problem)) return gemm->*kGemm[index];
  const ConvProblem& conv = std::get<ConvProblem>(problem);
  return conv.*FieldsOf(conv.pass, index).align;
}

double ScaleBytes(const Problem& problem) {
  double bytes = 0;
  for (const OperandRole role : {OperandRole::kScaleA, OperandRole::kScaleB, OperandRole::kScaleD}) {
    if (Uses(problem, role)) bytes += static_cast<double>(Stored(problem, role).Bytes());
  }
  return bytes;
}

std::string_view NameOf(const Problem& problem, OperandRole role) {
  static constexpr std::string_view kNames[][kRoles] = {{"a", "b", "c", "d", "bias", "scale_a", "scale_b", "scale_d"},
                                                        {"x", "w", "z", "y", "bias", "scale_x", "scale_w", "scale_y"},
                                                        {"y", "w", "z", "x", "bias", "scale_y", "scale_w", "scale_x"},
                                                        {"y", "x", "z", "w", "bias", "scale_y", "scale_x", "scale_w"}};
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  return kNames[conv == nullptr ? 0 : 1 + static_cast<size_t>(conv->pass)][static_cast<size_t>(role)];
}

}  // namespace laneshift::ir
