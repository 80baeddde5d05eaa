#include "compiler/contraction/contraction.h"

#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/integer_math.h"
#include "ir/epilogue_steps.h"

namespace laneshift::compiler {
namespace {

using ir::Operand;

BiasAxis BiasOf(const GemmProblem& problem) { return problem.bias; }
BiasAxis BiasOf(const GroupedGemmProblem& problem) { return problem.bias; }
BiasAxis BiasOf(const ConvProblem& problem) { return problem.bias == ConvBias::kK ? BiasAxis::kN : BiasAxis::kNone; }

void AddExtents(const GemmProblem& problem, const Schedule&, size_t, Contraction& contraction) {
  contraction.d_rows = "D";
  contraction.m = problem.m;
  contraction.n = problem.n;
  contraction.run = problem.k;
  contraction.batch = problem.batch;
  contraction.batch_name = "batch";
}

void AddExtents(const GroupedGemmProblem& problem, const Schedule&, size_t, Contraction& contraction) {
  contraction.d_rows = "D";
  contraction.m = problem.Rows();
  contraction.n = problem.n;
  contraction.run = problem.k;
  contraction.batch = problem.groups;
  contraction.batch_name = "groups";
  contraction.parts_of_k = problem.DividesK();
  contraction.grouped = !contraction.parts_of_k;
  if (problem.layout == GroupLayout::kMasked) contraction.group_rows = problem.m;
}

// The taps of a filter of one group are columns of a matrix where they follow each other in memory, and no unit that is
// loaded belongs to two of them: a span of a swizzled tile, or an element of a packed copy. Pixels of fewer bytes than
// a bulk copy begins at are packed so, or as windows.
FilterTaps TapsOf(const ConvProblem& problem, const Schedule& schedule, const Contraction& contraction) {
  constexpr int64_t kSpanBytes = 128, kUnitBytes = 16;
  const bool dense = TapsAreEven(contraction.d, true) && (problem.beta == 0 || TapsAreEven(contraction.c, true));
  if (schedule.reuse == Reuse::kDirect && dense) return FilterTaps::kColumns;
  if (!dense || problem.groups > 1 || contraction.merged > 1 || contraction.geometry.taps == 1)
    return FilterTaps::kMatrices;
  const int64_t bytes = contraction.b.BytesOf(problem.c);
  if (bytes % kSpanBytes == 0) return FilterTaps::kColumns;
  if (bytes >= kUnitBytes || schedule.b_load != LoadPath::kPack) return FilterTaps::kMatrices;
  return HasWindows(contraction.geometry, contraction.b.ElementBytes()) ? FilterTaps::kWindows
                                                                        : FilterTaps::kPackedColumns;
}

bool IsDepthwise(const ConvProblem& problem) {
  return problem.groups > 1 && problem.groups == problem.c && problem.groups == problem.k;
}

// The elements of windows are columns, and K is blocks of positions.
void TakeWindows(const Schedule& schedule, Contraction& contraction) {
  const ConvGeometry& geometry = contraction.geometry;
  contraction.windows = WindowsOf(geometry, contraction.b.ElementBytes(), schedule);
  contraction.n = geometry.filter[kDepth] * contraction.windows.Columns();
  contraction.run = PositionsOf(geometry, contraction.windows);
}

// The same filters, each of one tap with all channels.
ir::StoredTensor RowsOfFilters(ir::StoredTensor filters) {
  using enum ir::StoredTensor::Dimension;
  for (const auto d : {kPixel, kRow, kPlane}) {
    filters.extents[kElement] *= filters.extents[d];
    filters.extents[d] = 1;
  }
  return filters;
}

void JoinChannels(const ConvProblem& problem, bool joins, const std::vector<OperandSource*>& pixels) {
  for (OperandSource* const source : pixels) source->run = source->memory.Inner() / (joins ? 1 : problem.groups);
}

// Threads that compute a depthwise convolution directly take all channels of a pixel as one matrix, whose K are the
// taps. The filters, of one channel each, are rows of taps in any pass.
void JoinChannels(const ConvProblem& problem, bool joins, Contraction& contraction) {
  JoinChannels(problem, joins, {&contraction.a, &contraction.c, &contraction.d});
  const bool transposed = problem.pass == ConvPass::kDgrad && !joins;
  contraction.b.outer_axis = transposed ? ir::Axis::kK : ir::Axis::kN;
  contraction.b.inner_axis = transposed ? ir::Axis::kN : ir::Axis::kK;
  if (!joins) return;
  contraction.geometry.filters = contraction.n = problem.groups;
  contraction.batch = 1;
}

// A filter of one tap that goes over each pixel once multiplies it by a matrix. Where a schedule reuses no activations,
// and pixels are evenly spaced, images are matrices too: plain bulk copies bring them faster than im2col copies.
bool TakesMatrices(const ConvProblem& problem, const Schedule& schedule) {
  constexpr Spatial kOnes = {1, 1, 1}, kZeros = {};
  const bool one_tap =
      problem.filter == kOnes && problem.stride == kOnes && problem.pad_before == kZeros && problem.pad_after == kZeros;
  const bool reads_pixels =
      problem.pass == ConvPass::kWgrad ? schedule.reuse == Reuse::kDirect : schedule.reuse != Reuse::kNone;
  return one_tap && problem.groups == 1 && schedule.merge_groups == 1 && !reads_pixels;
}

// Whether all operands are now matrices.
bool MakeMatrices(const ConvProblem& problem, const Schedule& schedule, Contraction& contraction) {
  if (!TakesMatrices(problem, schedule)) return false;
  std::array<std::optional<OperandSource>, 4> matrices;
  for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC, Operand::kD}) {
    auto& matrix = matrices[static_cast<size_t>(operand)];
    matrix = AsMatrix(contraction.Of(operand));
    if (!matrix) return false;
  }
  for (size_t i = 0; i < matrices.size(); ++i) contraction.Of(static_cast<Operand>(i)) = *matrices[i];
  return true;
}

void AddExtents(const ConvProblem& problem, const Schedule& schedule, size_t number, Contraction& contraction) {
  if (MakeMatrices(problem, schedule, contraction)) {
    const auto extent = [](const OperandSource& matrix, ir::Axis axis) {
      return matrix.inner_axis == axis ? matrix.run : matrix.MatrixRows();
    };
    contraction.d_rows = contraction.d.name;
    contraction.m = extent(contraction.a, ir::Axis::kM);
    contraction.n = extent(contraction.b, ir::Axis::kN);
    contraction.run = extent(contraction.a, ir::Axis::kK);
    contraction.batch_name = "groups";
    return;
  }
  contraction.geometry = GeometryOf(problem, contraction.a, schedule, number);
  const ConvGeometry& geometry = contraction.geometry;
  contraction.d_rows = contraction.d.name;
  if (contraction.SumsPixels()) {
    contraction.m = geometry.filters;
    contraction.run = geometry.positions;
    contraction.batch_name = "taps";
    const FilterTaps taps = TapsOf(problem, schedule, contraction);
    const bool columns = taps != FilterTaps::kMatrices;
    if (columns != (contraction.taps != FilterTaps::kMatrices)) {
      for (OperandSource* const filters : {&contraction.c, &contraction.d}) {
        const ir::OperandRole role = filters == &contraction.c ? ir::OperandRole::kC : ir::OperandRole::kD;
        filters->memory = columns ? RowsOfFilters(filters->memory) : ir::Stored(problem, role);
      }
    }
    contraction.taps = taps;
    contraction.n = columns ? geometry.channels * geometry.taps : geometry.channels;
    contraction.windows = {};
    if (taps == FilterTaps::kWindows) TakeWindows(schedule, contraction);
    contraction.batch = columns ? 1 : geometry.taps * problem.groups;
    // Threads sum the filters of all channels at once: rows of one matrix.
    const bool joins = schedule.reuse == Reuse::kDirect && columns;
    if (IsDepthwise(problem)) JoinChannels(problem, joins, {&contraction.a, &contraction.b});
    if (IsDepthwise(problem) && joins) contraction.m = problem.k;
    return;
  }
  contraction.m = geometry.positions;
  contraction.n = geometry.filters;
  contraction.run = geometry.run;
  contraction.runs = geometry.channels * geometry.taps / geometry.run;
  contraction.batch = problem.groups;
  contraction.batch_name = "groups";
  if (IsDepthwise(problem)) JoinChannels(problem, schedule.reuse == Reuse::kDirect, contraction);
}

// The pixels of a phase among those of `source`. Its base is aligned as that of every phase.
void TakePhase(const ConvProblem& problem, const ConvGeometry& phase, OperandSource& source) {
  for (size_t d = 0; d < phase.output.size(); ++d) {
    if (problem.stride[d] == 1) continue;
    const size_t dimension = ir::StoredTensor::kPlane + d;
    int64_t& pitch = source.memory.pitches[dimension];
    if (problem.input[d] > 1) source.align = std::gcd(source.align, pitch * source.ElementBytes());
    source.first += phase.first[d] * pitch;
    source.memory.extents[dimension] = phase.output[d];
    pitch *= problem.stride[d];
  }
}

// Whether a gradient of x has a contraction for each of its phases.
bool HasPhases(const ConvProblem& problem, const Schedule& schedule) {
  return problem.pass == ConvPass::kDgrad && !TakesAllPhases(schedule) && !TakesPatches(problem, schedule);
}

// Groups of channels that the schedule makes one: none if it cannot, which CheckSchedule refuses.
int64_t MergedGroups(const Problem& problem, const Schedule& schedule) {
  const auto* conv = std::get_if<ConvProblem>(&problem);
  const bool divides = conv != nullptr && conv->groups % schedule.merge_groups == 0;
  return divides && schedule.reuse != Reuse::kDirect ? schedule.merge_groups : 1;
}

// `merged`: groups of the caller for each of the problem's.
Contraction ContractionOfGroups(const Problem& problem, int64_t merged, const Schedule& schedule, size_t number) {
  Contraction contraction{.a = SourceOf(problem, Operand::kA),
                          .b = SourceOf(problem, Operand::kB),
                          .c = SourceOf(problem, Operand::kC),
                          .d = SourceOf(problem, Operand::kD),
                          .merged = merged};
  std::visit(
      [&](const auto& kind) {
        AddExtents(kind, schedule, number, contraction);
        contraction.alpha = kind.alpha;
        contraction.beta = kind.beta;
        contraction.bias = BiasOf(kind);
        contraction.scale = kind.scale;
        if constexpr (requires { kind.scale_type; }) contraction.scale_type = kind.scale_type;
        if constexpr (requires { kind.scale_layout; }) contraction.scale_layout = kind.scale_layout;
        if constexpr (requires { kind.constant; }) contraction.constant = kind.constant;
        if constexpr (requires { kind.d_scale; }) contraction.d_scale = kind.d_scale;
        contraction.sum = kind.sum;
        contraction.numerics = kind.numerics;
        contraction.steps = &kind.epilogue;
      },
      problem);
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  if (conv != nullptr && HasPhases(*conv, schedule)) {
    TakePhase(*conv, contraction.geometry, contraction.c);
    TakePhase(*conv, contraction.geometry, contraction.d);
  }
  contraction.follows = number > 0;
  contraction.columns = contraction.n / ir::ColumnsPerOutput(contraction.epilogue());
  return contraction;
}

// The contraction of fewer groups, with filters as the caller stores them.
Contraction MergeGroups(const ConvProblem& problem, int64_t merged, const Schedule& schedule, size_t number) {
  ConvProblem joined = problem;
  joined.groups /= merged;
  Contraction contraction = ContractionOfGroups(joined, merged, schedule, number);
  for (const Operand operand : {Operand::kB, Operand::kC, Operand::kD}) {
    OperandSource& source = contraction.Of(operand);
    if (source.kind == SourceKind::kFilter) source = SourceOf(problem, operand);
  }
  // The packed copy has the taps in the order of those in memory.
  if (problem.pass == ConvPass::kForward) contraction.geometry.tap_step = {-1, -1, -1};
  contraction.steps = &problem.epilogue;
  return contraction;
}

}  // namespace

bool IsDepthwise(const Problem& problem) {
  const auto* conv = std::get_if<ConvProblem>(&problem);
  return conv != nullptr && IsDepthwise(*conv);
}

ir::MmaKind Contraction::Kind() const {
  const std::optional<ir::MmaKind> kind = ir::MmaKindOf(a.type(), b.type(), scale);
  LS_CHECK(kind.has_value(), "no matrix instruction multiplies ", DataTypeName(a.type()), " by ",
           DataTypeName(b.type()));
  return *kind;
}

const OperandSource& Contraction::Of(Operand operand) const {
  const OperandSource* const sources[] = {&a, &b, &c, &d};
  return *sources[static_cast<size_t>(operand)];
}
OperandSource& Contraction::Of(Operand operand) {
  OperandSource* const sources[] = {&a, &b, &c, &d};
  return *sources[static_cast<size_t>(operand)];
}

// Of few slices the last CTA of a tile adds as fast as another kernel begins (measured on an H200: 2 to 6 slices took
// up to 10 % longer, 7 and more up to 7 % less). Threads that store elements of windows have no registers for it.
// Another kernel has pieces of 8 columns, for which not every step of an epilogue has a form.
bool Contraction::AddsSlicesApart(const Schedule& schedule) const {
  constexpr int kFewSlices = 6;
  const int few = taps == FilterTaps::kWindows ? 1 : kFewSlices;
  const bool plain = d.kind == SourceKind::kMatrix && steps->empty() && scale == Scaling::kNone &&
                     d_scale == OutputScaling::kNone && schedule.reuse != Reuse::kDirect;
  return (SumsPixels() || plain) && schedule.split_k > few;
}

Contraction Contraction::Under(const Problem& problem, const Schedule& schedule) const {
  // The schedule decides whether D is the pixels of one phase or of all of them.
  const auto* conv = std::get_if<ConvProblem>(&problem);
  const bool has_phases = conv != nullptr && conv->pass == ConvPass::kDgrad && conv->stride != Spatial{1, 1, 1};
  const bool has_matrices = a.kind == SourceKind::kMatrix || (conv != nullptr && TakesMatrices(*conv, schedule));
  if (has_phases || merged > 1 || schedule.merge_groups > 1 || (conv != nullptr && has_matrices))
    return ContractionOf(problem, schedule);
  Contraction other = *this;
  std::visit([&](const auto& kind) { AddExtents(kind, schedule, 0, other); }, problem);
  return other;
}

int64_t Contraction::Blocks(const Schedule& schedule) const { return runs * base::CeilDiv(Depth(), schedule.tile_k); }

int64_t Contraction::Iterations(const Schedule& schedule) const {
  return geometry.Reuses() ? Blocks(schedule) / geometry.filter[kWidth] : Blocks(schedule);
}

size_t ContractionsOf(const Problem& problem, const Schedule& schedule) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  return conv != nullptr && HasPhases(*conv, schedule) ? PhasesOf(*conv).size() : 1;
}

Contraction ContractionOf(const Problem& problem, const Schedule& schedule, size_t number) {
  const int64_t merged = MergedGroups(problem, schedule);
  if (merged > 1) return MergeGroups(std::get<ConvProblem>(problem), merged, schedule, number);
  return ContractionOfGroups(problem, 1, schedule, number);
}

Contraction ContractionOf(const Problem& problem) { return ContractionOf(problem, Schedule{.reuse = Reuse::kIm2col}); }

}  // namespace laneshift::compiler
