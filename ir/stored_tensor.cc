#include "ir/stored_tensor.h"

#include "base/check.h"
#include "base/text.h"
#include "ir/conv_problem.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/metadata_block.h"

namespace laneshift::ir {
namespace {

StoredTensor Vector(DataType type, int64_t length) {
  StoredTensor vector{.type = type};
  vector.extents.back() = length;
  return vector;
}

// One vector for each group, or matrix of a batch.
StoredTensor OfGroups(DataType type, int64_t groups, int64_t length) {
  return groups == 1 ? Vector(type, length) : StoredTensor::Matrices(type, 1, groups, length, length, 0);
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

size_t StoredTensor::Bytes() const { return static_cast<size_t>(BytesOf(type, RowStart(Rows() - 1) + Inner())); }

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

int64_t OutputColumns(const GemmProblem& p) { return p.n / ColumnsPerOutput(p.epilogue); }
int64_t OutputColumns(const ConvProblem& p) {
  if (p.pass == ConvPass::kDgrad) return p.c;
  if (p.pass == ConvPass::kWgrad) return p.c / p.groups;
  return p.k / ColumnsPerOutput(p.epilogue);
}
int64_t OutputColumns(const GroupedGemmProblem& p) { return p.n / ColumnsPerOutput(p.epilogue); }

std::optional<BlockScaling> BlockScalingOf(Scaling scale) {
  if (scale == Scaling::kMx) return BlockScaling{DataType::kUe8m0, kMxRun};
  if (scale == Scaling::kNv) return BlockScaling{DataType::kUe4m3, kNvRun};
  return std::nullopt;
}

std::optional<BlockScaling> BlockScalingOf(Scaling scale, Sparsity sparse) {
  std::optional<BlockScaling> blocks = BlockScalingOf(scale);
  if (blocks && sparse == Sparsity::kA) blocks->run *= 2;
  return blocks;
}

std::optional<MmaKind> MmaKindOf(DataType a, DataType b, Scaling scale) {
  const std::optional<BlockScaling> blocks = BlockScalingOf(scale);
  return MmaKindOf(a, b, blocks ? blocks->run : 0);
}

int64_t TmaAlignmentOf(DataType type, std::optional<MmaKind> kind) { return kind && IsPadded(*kind, type) ? 32 : 16; }

std::optional<BlockScaling> BlockScalingOf(OutputScaling scale) {
  if (scale == OutputScaling::kMx) return BlockScalingOf(Scaling::kMx);
  if (scale == OutputScaling::kNv) return BlockScalingOf(Scaling::kNv);
  return std::nullopt;
}

OutputScaling OutputScalingOf(const Problem& problem) {
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  return gemm != nullptr ? gemm->d_scale : OutputScaling::kNone;
}

ConstantOperand ConstantOf(const Problem& problem) {
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  return gemm != nullptr ? gemm->constant : ConstantOperand::kNone;
}

StoredTensor ScaleBlocks(const BlockScaling& scaling, int64_t batch, int64_t rows, int64_t k) {
  const int64_t lines = ScaleBlock::Count(ScaleBlock::Count(k, scaling.run), ScaleBlock::kFactors) * ScaleBlock::kLines;
  return StoredTensor::Matrices(scaling.type, batch * ScaleBlock::Count(rows, ScaleBlock::kRows), lines,
                                ScaleBlock::kLineBytes, ScaleBlock::kLineBytes, lines * ScaleBlock::kLineBytes);
}

namespace {

// What is not stored in a way of the kind of problem: one scale factor; none where D has no blocks; offsets, sizes and
// indices of rows where there are no groups, metadata where A is dense.
StoredTensor StoredAlike(OperandRole role) {
  if (role == OperandRole::kBlockScaleD) return Vector(DataType::kUe8m0, 0);
  if (IsScale(role)) return Vector(DataType::kF32, 1);
  if (role == OperandRole::kMetadataA) return Vector(DataType::kU8, 0);
  LS_CHECK(role == OperandRole::kGroupOffsets || role == OperandRole::kGroupSizes || IsRowIndices(role),
           "unknown role ", static_cast<int>(role));
  return Vector(DataType::kS32, 0);
}

// Those of scale=block: for each row of A and run of k, and for each run of n and of k.
StoredTensor RowFactors(ScaleFactorType type, int64_t matrices, int64_t rows, int64_t k) {
  if (type == ScaleFactorType::kUe8m0) {
    const int64_t words = PackedFactors::Words(k), bytes = rows * PackedFactors::kOfWord;
    return StoredTensor::Matrices(DataType::kUe8m0, matrices, words, bytes, bytes, words * bytes);
  }
  return StoredTensor::Matrices(DataType::kF32, matrices, ScaleRuns(k), rows, rows, ScaleRuns(k) * rows);
}
StoredTensor ColumnFactors(ScaleFactorType type, int64_t matrices, int64_t n, int64_t k) {
  if (type == ScaleFactorType::kUe8m0) {
    const int64_t bytes = PackedFactors::BytesOfColumns(k);
    return StoredTensor::Matrices(DataType::kUe8m0, matrices, ScaleRuns(n), bytes, bytes, ScaleRuns(n) * bytes);
  }
  return StoredTensor::Matrices(DataType::kF32, matrices, ScaleRuns(n), ScaleRuns(k), ScaleRuns(k),
                                ScaleRuns(n) * ScaleRuns(k));
}

// Of an operand with so many rows.
StoredTensor FactorsOf(const GemmProblem& p, const BlockScaling& scaling, int64_t rows) {
  if (p.scale_layout == ScaleLayout::k128x4) return ScaleBlocks(scaling, p.batch, rows, p.k);
  const int64_t factors = ScaleBlock::Count(p.k, scaling.run);
  return StoredTensor::Matrices(scaling.type, p.batch, rows, factors, factors, rows * factors);
}

}  // namespace

StoredTensor Stored(const GemmProblem& p, OperandRole role) {
  const bool a_k = p.a_major == Major::kK, b_k = p.b_major == Major::kK;
  switch (role) {
    case OperandRole::kA:
      return StoredTensor::Matrices(p.a, p.batch, a_k ? p.m : StoredDepth(p.sparse, p.k),
                                    a_k ? StoredDepth(p.sparse, p.k) : p.m, p.lda, p.stride_a);
    case OperandRole::kB:
      return StoredTensor::Matrices(p.b, p.batch, b_k ? p.n : p.k, b_k ? p.k : p.n, p.ldb, p.stride_b);
    case OperandRole::kC:
      return StoredTensor::Matrices(p.c, p.batch, p.m, p.n, p.ldc, p.stride_c);
    case OperandRole::kD:
      return StoredTensor::Matrices(p.d, p.batch, p.m, OutputColumns(p), p.ldd, p.stride_d);
    case OperandRole::kBias:
      return Vector(AddendType(p.d), p.bias == BiasAxis::kM ? p.m : p.n);
    case OperandRole::kScaleA:
      if (const auto blocks = BlockScalingOf(p.scale, p.sparse)) return FactorsOf(p, *blocks, p.m);
      if (p.scale == Scaling::kRow) return OfGroups(DataType::kF32, p.batch, p.m);
      return p.scale == Scaling::kBlock ? RowFactors(p.scale_type, p.batch, p.m, p.k) : StoredAlike(role);
    case OperandRole::kScaleB:
      if (const auto blocks = BlockScalingOf(p.scale, p.sparse)) return FactorsOf(p, *blocks, p.n);
      if (p.scale == Scaling::kRow) return OfGroups(DataType::kF32, p.batch, p.n);
      return p.scale == Scaling::kBlock ? ColumnFactors(p.scale_type, p.batch, p.n, p.k) : StoredAlike(role);
    case OperandRole::kBlockScaleD:
      if (const auto blocks = BlockScalingOf(p.d_scale)) return ScaleBlocks(*blocks, p.batch, p.m, OutputColumns(p));
      return StoredAlike(role);
    case OperandRole::kMetadataA:
      return p.sparse == Sparsity::kA ? MetadataBlocks(OperandBitsOf(p), p.batch, p.m, p.k) : StoredAlike(role);
    default:
      return StoredAlike(role);
  }
}

// Blocks of 128 rows in which all rows fit, whatever the sizes of groups are: each group begins a block.
int64_t MostScaleBlocks(const GroupedGemmProblem& p) {
  return (p.m + ScaleBlock::kRows - 1) / ScaleBlock::kRows + p.groups - 1;
}

// Of groups that divide K; where groups make no difference, see below.
std::optional<StoredTensor> StoredOfParts(const GroupedGemmProblem& p, OperandRole role) {
  switch (role) {
    case OperandRole::kA:
      return StoredTensor::Matrices(p.a, 1, p.k, p.m, p.lda, 0);
    case OperandRole::kB:
      return StoredTensor::Matrices(p.b, 1, p.k, p.n, p.ldb, 0);
    case OperandRole::kC:
      return StoredTensor::Matrices(p.c, p.groups, p.m, p.n, p.ldc, p.stride_c);
    case OperandRole::kD:
      return StoredTensor::Matrices(p.d, p.groups, p.m, OutputColumns(p), p.ldd, p.stride_d);
    case OperandRole::kBias:
      return Vector(AddendType(p.d), p.bias == BiasAxis::kM ? p.m : p.n);
    default:
      return std::nullopt;
  }
}

// Rows of all groups are one matrix of A, C and D.
StoredTensor Stored(const GroupedGemmProblem& p, OperandRole role) {
  if (p.DividesK()) {
    if (const auto stored = StoredOfParts(p, role)) return *stored;
  }
  const bool b_k = p.b_major == Major::kK;
  const auto rows = [](DataType type, int64_t count, int64_t inner, int64_t pitch) {
    return StoredTensor::Matrices(type, 1, count, inner, pitch, 0);
  };
  switch (role) {
    case OperandRole::kA:
      return rows(p.a, p.RowsOfA(), p.k, p.lda);
    case OperandRole::kB:
      return StoredTensor::Matrices(p.b, p.groups, b_k ? p.n : p.k, b_k ? p.k : p.n, p.ldb, p.stride_b);
    case OperandRole::kC:
      return rows(p.c, p.RowsOfD(), p.n, p.ldc);
    case OperandRole::kD:
      return rows(p.d, p.RowsOfD(), OutputColumns(p), p.ldd);
    case OperandRole::kBias:
      return p.bias == BiasAxis::kM ? Vector(AddendType(p.d), p.RowsOfD()) : OfGroups(AddendType(p.d), p.groups, p.n);
    case OperandRole::kScaleA:
      if (const auto blocks = BlockScalingOf(p.scale)) {
        if (p.layout == GroupLayout::kMasked) return ScaleBlocks(*blocks, p.groups, p.m, p.k);
        return ScaleBlocks(*blocks, 1, MostScaleBlocks(p) * ScaleBlock::kRows, p.k);
      }
      if (p.scale == Scaling::kRow) return Vector(DataType::kF32, p.RowsOfA());
      if (p.scale != Scaling::kBlock) return StoredAlike(role);
      if (p.Gathers()) return RowFactors(p.scale_type, 1, p.RowsOfA(), p.k);
      return RowFactors(p.scale_type, p.layout == GroupLayout::kMasked ? p.groups : 1, p.m, p.k);
    case OperandRole::kScaleB:
      if (const auto blocks = BlockScalingOf(p.scale)) return ScaleBlocks(*blocks, p.groups, p.n, p.k);
      if (p.scale == Scaling::kRow) return OfGroups(DataType::kF32, p.groups, p.n);
      return p.scale == Scaling::kBlock ? ColumnFactors(p.scale_type, p.groups, p.n, p.k) : StoredAlike(role);
    case OperandRole::kRowIndicesA:
      return Vector(DataType::kS32, p.Gathers() ? p.Rows() : 0);
    case OperandRole::kRowIndicesD:
      return Vector(DataType::kS32, p.Scatters() ? p.Rows() : 0);
    case OperandRole::kGroupOffsets:
      return Vector(DataType::kS32, p.groups + 1);
    case OperandRole::kGroupSizes:
      return Vector(DataType::kS32, p.groups);
    default:
      return StoredAlike(role);
  }
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
    default:
      return StoredAlike(role);
  }
}

StoredTensor Stored(const Problem& problem, OperandRole role) {
  return std::visit([&](const auto& kind) { return Stored(kind, role); }, problem);
}

namespace {

// What the operands of steps depend on: `rows` and `columns` of the matrix that the steps before a gated linear unit
// process; vectors along columns are those of a group.
struct StepExtents {
  int64_t rows, columns, groups;
};
StepExtents ExtentsOf(const GemmProblem& p) { return {p.m, p.n, 1}; }
StepExtents ExtentsOf(const GroupedGemmProblem& p) { return {p.RowsOfD(), p.n, p.DividesK() ? 1 : p.groups}; }
StepExtents ExtentsOf(const ConvProblem& p) {
  return {Stored(p, OperandRole::kD).Rows(), OutputColumns(p) * ColumnsPerOutput(p.epilogue), 1};
}

// The operand of a step.
StoredTensor TensorOf(StepOperand operand, DataType type, const StoredTensor& output, const StepExtents& extents) {
  const auto& [rows, columns, groups] = extents;
  switch (operand) {
    case StepOperand::kRowVector:
    case StepOperand::kRowReduction:
      return Vector(type, rows);
    case StepOperand::kColumnVector:
    case StepOperand::kColumnReduction:
      return OfGroups(type, groups, columns);
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
  const Epilogue& epilogue = EpilogueOf(problem);
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  const AxisLetters letters = conv != nullptr ? LettersOf(conv->pass) : kGemmLetters;
  const StoredTensor output = Stored(problem, OperandRole::kD);
  const StepExtents products = std::visit([](const auto& kind) { return ExtentsOf(kind); }, problem);
  const size_t gate = GateOf(epilogue);
  std::vector<EpilogueTensor> tensors;
  for (size_t i = 0; i < epilogue.size(); ++i) {
    const EpilogueStep& step = epilogue[i];
    StepExtents extents = products;
    if (i >= gate) extents.columns = output.Inner();
    for (const StepTensor& own : TensorsOf(step, output.type)) {
      const std::string name = step.function ? step.function->name : PrintStep(step, letters);
      const bool table = own.operand == StepOperand::kTable;
      tensors.push_back(
          {.name = base::Cat("epilogue[", tensors.size(), "] (", name, ")"),
           .tensor = table ? Vector(own.type, own.count) : TensorOf(own.operand, own.type, output, extents),
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
    if (role == OperandRole::kTensorScaleA || role == OperandRole::kTensorScaleB) return scale == Scaling::kNv;
    const OutputScaling d_scale = OutputScalingOf(problem);
    if (role == OperandRole::kBlockScaleD) return d_scale != OutputScaling::kNone;
    if (role == OperandRole::kScaleD && d_scale != OutputScaling::kNone) return d_scale == OutputScaling::kNv;
    return scale != Scaling::kNone && (role != OperandRole::kScaleD || IsFloat8(Stored(problem, OperandRole::kD).type));
  }
  if (role == OperandRole::kGroupOffsets || role == OperandRole::kGroupSizes) {
    const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
    return grouped != nullptr && (grouped->layout == GroupLayout::kMasked) == (role == OperandRole::kGroupSizes);
  }
  if (IsRowIndices(role)) {
    const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
    return grouped != nullptr && (role == OperandRole::kRowIndicesA ? grouped->Gathers() : grouped->Scatters());
  }
  if (role == OperandRole::kMetadataA) {
    const auto* gemm = std::get_if<GemmProblem>(&problem);
    return gemm != nullptr && gemm->sparse == Sparsity::kA;
  }
  if (role != OperandRole::kBias) return true;
  return std::visit([](const auto& kind) { return kind.bias != decltype(kind.bias)::kNone; }, problem);
}

int64_t AlignmentOf(const Problem& problem, OperandRole role) {
  constexpr size_t kAligned = 4;
  static constexpr int64_t GemmProblem::*kGemm[kAligned] = {&GemmProblem::align_a, &GemmProblem::align_b,
                                                            &GemmProblem::align_c, &GemmProblem::align_d};
  static constexpr int64_t GroupedGemmProblem::*kGrouped[kAligned] = {
      &GroupedGemmProblem::align_a, &GroupedGemmProblem::align_b, &GroupedGemmProblem::align_c,
      &GroupedGemmProblem::align_d};
  const auto index = static_cast<size_t>(role);
  if (index >= kAligned) return 0;
  if (const GemmProblem* gemm = std::get_if<GemmProblem>(&problem)) return gemm->*kGemm[index];
  if (const auto* grouped = std::get_if<GroupedGemmProblem>(&problem)) return grouped->*kGrouped[index];
  const ConvProblem& conv = std::get<ConvProblem>(problem);
  return conv.*FieldsOf(conv.pass, index).align;
}

double ScaleBytes(const Problem& problem) {
  double bytes = 0;
  for (const OperandRole role : kAllRoles) {
    if (IsScale(role) && Uses(problem, role)) bytes += static_cast<double>(Stored(problem, role).Bytes());
  }
  return bytes;
}

std::string_view NameOf(const Problem& problem, OperandRole role) {
  static constexpr std::string_view kNames[][kRoles] = {
      {"a", "b", "c", "d", "bias", "scale_a", "scale_b", "scale_d", "tensor_scale_a", "tensor_scale_b", "", "",
       "block_scale_d", "metadata_a", "", ""},
      {"x", "w", "z", "y", "bias", "scale_x", "scale_w", "scale_y", "tensor_scale_x", "tensor_scale_w", "", "", ""},
      {"y", "w", "z", "x", "bias", "scale_y", "scale_w", "scale_x", "tensor_scale_y", "tensor_scale_w", "", "", ""},
      {"y", "x", "z", "w", "bias", "scale_y", "scale_x", "scale_w", "tensor_scale_y", "tensor_scale_x", "", "", ""},
      {"a", "b", "c", "d", "bias", "scale_a", "scale_b", "scale_d", "tensor_scale_a", "tensor_scale_b", "group_offsets",
       "group_sizes", "", "", "a_row_indices", "d_row_indices"}};
  constexpr size_t kGrouped = std::size(kNames) - 1;
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  const size_t kind = conv != nullptr                                       ? 1 + static_cast<size_t>(conv->pass)
                      : std::holds_alternative<GroupedGemmProblem>(problem) ? kGrouped
                                                                            : 0;
  return kNames[kind][static_cast<size_t>(role)];
}

}  // namespace laneshift::ir
