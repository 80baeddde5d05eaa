#include "compiler/contraction/conv_geometry.h"

#include <algorithm>

#include "base/integer_math.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/program.h"

namespace laneshift::compiler {
namespace {

constexpr int64_t kLongestKnownFilter = 512;  // elements; its loads are unrolled
// Elements of a block of K, and columns of a tile: accumulators wider than this leave no registers for loads that are
// unrolled over a longer block.
constexpr int kShortBlock = 64, kNarrowTile = 128;

// A phase for each remainder of a column's displacement by the stride.
void PlanPhases(ConvGeometry& geometry) {
  const int64_t stride = geometry.stride[kWidth];
  const auto distance = [&](int64_t s) { return s * geometry.dilation[kWidth]; };
  for (int64_t first = 0; first < geometry.filter[kWidth]; ++first) {
    const auto same_phase = [&](int64_t s) { return (distance(s) - distance(first)) % stride == 0; };
    bool known = false;
    for (int64_t s = 0; s < first; ++s) known = known || same_phase(s);
    if (known) continue;
    const int phase = static_cast<int>(geometry.phases.size());
    geometry.phases.push_back(static_cast<int>(distance(first)));
    for (int64_t s = first; s < geometry.filter[kWidth]; ++s) {
      if (!same_phase(s)) continue;
      const int row = static_cast<int>((distance(s) - distance(first)) / stride);
      geometry.columns.push_back({.s = static_cast<int>(s), .phase = phase, .row = row, .chain = phase});
      geometry.halo = std::max(geometry.halo, row);
    }
  }
}

// From the centre to the right, then from the left to the centre. REQUIRES: the filter has a centre.
void PlanMasked(ConvGeometry& geometry) {
  const int64_t columns = geometry.filter[kWidth];
  const int64_t centre = geometry.CentreColumn();
  geometry.phases = {0};
  geometry.halo = static_cast<int>((columns - 1) * geometry.dilation[kWidth]);
  for (int64_t i = 0; i < columns; ++i) {
    const int64_t s = (centre + i) % columns;
    const int64_t row = s * geometry.dilation[kWidth];
    geometry.columns.push_back({.s = static_cast<int>(s),
                                .row = static_cast<int>(row),
                                .chain = s < centre ? 1 : 0,
                                .border_offset = static_cast<int>(row - geometry.pad[kWidth])});
  }
}

}  // namespace

std::vector<ConvGeometry::Column> ConvGeometry::ColumnsOf(int chain) const {
  std::vector<Column> of_chain;
  for (const Column& column : columns) {
    if (column.chain == chain) of_chain.push_back(column);
  }
  return of_chain;
}

int ConvGeometry::TileRows(const Schedule& schedule) const {
  // Candidates are ranked before they are checked: a tile with only stale rows counts as one row.
  return std::max(1, schedule.tile_m - stale * ir::kRefreshedRows);
}

int64_t ConvGeometry::CentreColumn() const {
  const bool same = stride[kWidth] == 1 && output[kWidth] == input[kWidth];
  return same && pad[kWidth] % dilation[kWidth] == 0 ? pad[kWidth] / dilation[kWidth] : -1;
}

namespace {

// Whether no step takes columns for channels of one pixel.
bool IsElementwise(const Epilogue& epilogue) {
  return std::all_of(epilogue.begin(), epilogue.end(), [](const EpilogueStep& step) {
    const ir::StepInfo& info = ir::InfoOf(step.kind);
    const bool by_element = info.operand == ir::StepOperand::kNone || ir::IsMatrix(info.operand);
    return by_element && info.action != ir::StepAction::kCall && info.action != ir::StepAction::kGate;
  });
}

// What the products of a position take: a tile of pixels is loaded for each tap, in the time of so many columns (H200).
int64_t TimeOfTaps(const Spatial& taps, int64_t columns) {
  constexpr int64_t kColumnsOfLoad = 128;
  return taps[kDepth] * taps[kHeight] * taps[kWidth] * base::RoundUp(columns, kColumnsOfLoad);
}

}  // namespace

bool TakesPatches(const ConvProblem& problem, const Schedule& schedule) {
  constexpr int64_t kUnitBytes = 16, kMostPixels = 4096;
  const bool strided = problem.pass == ConvPass::kDgrad && problem.stride != Spatial{1, 1, 1};
  if (!strided || TakesAllPhases(schedule) || problem.groups > 1) return false;
  if (ir::BytesOf(problem.w, problem.c) >= kUnitBytes || problem.bias != ConvBias::kNone) return false;
  if (!IsElementwise(problem.epilogue)) return false;
  const GradientPatch patch = PatchOf(problem);
  return patch.Pixels() > 1 && patch.Pixels() <= kMostPixels &&
         TimeOfTaps(patch.taps, patch.Pixels() * problem.c) <= TimeOfTaps(patch.taps_of_phases, problem.c);
}

int64_t ColumnsOfBox(const ConvGeometry& geometry) {
  constexpr int64_t kMostColumns = 64;
  const int64_t columns = geometry.output[kWidth];
  return base::RoundUp(base::CeilDiv(columns, base::CeilDiv(columns, kMostColumns)), int64_t{geometry.direct_run});
}

namespace {

void DescribeForward(const ConvProblem& problem, ConvGeometry& geometry) {
  geometry.input = problem.input;
  geometry.output = problem.Output();
  geometry.filter = problem.filter;
  geometry.stride = problem.stride;
  geometry.pad = problem.pad_before;
  geometry.dilation = problem.dilation;
  geometry.channels = problem.c / problem.groups;
  geometry.filters = problem.k / problem.groups;
}

// A convolution of the gradient of y, whose channels are filters, and whose filters are channels of x: all phases. The
// taps are counted from the last one, so that the pixels that they read ascend.
void DescribeWholeGradient(const ConvProblem& problem, ConvGeometry& geometry) {
  geometry.input = problem.Output();
  geometry.output = problem.input;
  geometry.filter = problem.filter;
  geometry.stride = problem.stride;
  geometry.divides = problem.stride != Spatial{1, 1, 1};
  geometry.dilation = problem.dilation;
  for (size_t d = 0; d < geometry.pad.size(); ++d) {
    geometry.last_tap[d] = problem.filter[d] - 1;
    geometry.tap_step[d] = 1;
    geometry.pad[d] = geometry.last_tap[d] * problem.dilation[d] - problem.pad_before[d];
  }
  geometry.channels = problem.k / problem.groups;
  geometry.filters = problem.c / problem.groups;
}

// The same of one phase.
void DescribePhase(const ConvProblem& problem, const GradientPhase& phase, ConvGeometry& geometry) {
  geometry.input = problem.Output();
  geometry.first = phase.first;
  geometry.output = phase.pixels;
  geometry.filter = phase.taps;
  geometry.stride = {1, 1, 1};
  geometry.pad = phase.pad;
  geometry.dilation = phase.dilation;
  geometry.last_tap = phase.last_tap;
  geometry.tap_step = phase.tap_step;
  geometry.channels = problem.k / problem.groups;
  geometry.filters = problem.c / problem.groups;
}

// Pixels of a line under a run of outputs.
int64_t PixelsOfRun(const ConvGeometry& geometry, int64_t run) {
  const int64_t stride = geometry.stride[kWidth], reach = (geometry.filter[kWidth] - 1) * geometry.dilation[kWidth];
  return 1 + (geometry.divides ? (run - 1 + reach) / stride : (run - 1) * stride + reach);
}

// The run for which a line takes the fewest instructions: eight products for each tap of an output, and for each number
// that is read a load and eight that it becomes an f32. Of a convolution, outputs that fill up the line count, and taps
// are read. Of a gradient, gradients of y are read, and the outputs that are left over go one by one.
int RunOfOutputs(const ConvGeometry& geometry, bool gradient) {
  constexpr int64_t kProducts = 8, kRead = 9;
  const int64_t taps = geometry.filter[kWidth], outputs = geometry.output[kWidth];
  const auto of_run = [&](int64_t run) {
    return kProducts * run * taps + kRead * (PixelsOfRun(geometry, run) + (gradient ? run : taps));
  };
  const auto cost = [&](int run) {
    if (!gradient) return base::CeilDiv(outputs, int64_t{run}) * of_run(run);
    return outputs / run * of_run(run) + outputs % run * of_run(1);
  };
  const auto fits = [&](int run) { return !geometry.divides || run % geometry.stride[kWidth] == 0; };
  int best = kDirectRuns[0];
  const auto consider = [&](int run) {
    if (fits(run) && (!fits(best) || cost(run) < cost(best))) best = run;
  };
  gradient ? std::for_each(std::begin(kDirectGradientRuns), std::end(kDirectGradientRuns), consider)
           : std::for_each(std::begin(kDirectRuns), std::end(kDirectRuns), consider);
  return best;
}

// Of `positions` outputs. Where strides divide, a box may begin at any phase.
void PlanBoxes(int64_t positions, bool gradient, ConvGeometry& geometry) {
  geometry.direct_run = RunOfOutputs(geometry, gradient);
  const int64_t columns = ColumnsOfBox(geometry);
  geometry.outputs_of_box = {1, std::max<int64_t>(1, positions / columns), columns};
  for (size_t d = 0; d < geometry.box.size(); ++d) {
    const int64_t outputs = geometry.outputs_of_box[d] - 1, stride = geometry.stride[d];
    const int64_t reach = (geometry.filter[d] - 1) * geometry.dilation[d];
    geometry.box[d] = 1 + (geometry.divides ? (stride - 1 + outputs + reach) / stride : outputs * stride + reach);
  }
}

// The same of patches, which have the pixels of all phases.
void DescribePatches(const ConvProblem& problem, const GradientPatch& patch, ConvGeometry& geometry) {
  geometry.input = problem.Output();
  geometry.patch = patch.size;
  geometry.output = patch.patches;
  geometry.filter = patch.taps;
  geometry.stride = {1, 1, 1};
  geometry.pad = patch.pad;
  geometry.dilation = patch.dilation;
  geometry.last_tap = patch.last_tap;
  geometry.tap_step = patch.tap_step;
  geometry.tap_dilation = problem.dilation;
  geometry.channels = problem.k;
  geometry.filters = problem.c * patch.Pixels();
}

}  // namespace

ConvGeometry GeometryOf(const ConvProblem& problem, const OperandSource& images, const Schedule& schedule,
                        size_t phase) {
  ConvGeometry geometry{.images = problem.n};
  if (problem.pass == ConvPass::kDgrad && TakesAllPhases(schedule)) {
    DescribeWholeGradient(problem, geometry);
  } else if (TakesPatches(problem, schedule)) {
    DescribePatches(problem, PatchOf(problem), geometry);
  } else if (problem.pass == ConvPass::kDgrad) {
    const std::vector<GradientPhase> all = PhasesOf(problem);
    geometry.one_of_several = all.size() > 1;
    DescribePhase(problem, all.at(phase), geometry);
  } else {
    DescribeForward(problem, geometry);
  }
  geometry.planes = problem.input[kDepth] != 1 || problem.filter[kDepth] != 1 || problem.pad_before[kDepth] != 0 ||
                    problem.pad_after[kDepth] != 0;
  geometry.taps = geometry.filter[kDepth] * geometry.filter[kHeight] * geometry.filter[kWidth];
  const bool reuses = schedule.reuse == Reuse::kRowOffset || schedule.reuse == Reuse::kLaneShift;
  const bool masks = reuses && schedule.border == Border::kMask && geometry.CentreColumn() >= 0;
  geometry.masks_border = masks;
  if (masks) {
    PlanMasked(geometry);
  } else if (reuses) {
    PlanPhases(geometry);
  }
  const bool gradient = problem.pass == ConvPass::kWgrad;
  if (schedule.reuse == Reuse::kDirect) PlanBoxes(gradient ? schedule.tile_k : schedule.tile_m, gradient, geometry);
  const int64_t whole_columns = geometry.HasBoxes() ? geometry.outputs_of_box[kWidth] : 1;
  const int64_t whole_lines = geometry.HasBoxes() ? geometry.outputs_of_box[kHeight] : 1;
  geometry.padded_q = base::RoundUp(geometry.output[kWidth] + (masks ? 0 : geometry.halo), whole_columns);
  if (schedule.reuse == Reuse::kLaneShift && schedule.shift == ShiftForm::kFused) {
    for (int chain = 0; chain < geometry.Chains(); ++chain) {
      const std::vector<ConvGeometry::Column> columns = geometry.ColumnsOf(chain);
      geometry.stale = std::max(geometry.stale, columns.back().row - columns.front().row);
    }
  }
  geometry.positions =
      problem.n * geometry.output[kDepth] * base::RoundUp(geometry.output[kHeight], whole_lines) * geometry.padded_q;
  const bool whole_filters = schedule.a_load == LoadPath::kCopy || geometry.HasBoxes();
  geometry.run = whole_filters ? geometry.channels * geometry.taps : geometry.channels;
  const bool roomy = schedule.tile_n <= kNarrowTile || schedule.tile_k <= kShortBlock;
  geometry.known_filter = schedule.a_load == LoadPath::kCopy && GatherWidth(images) == 1 && problem.groups == 1 &&
                          !geometry.one_of_several && geometry.filters <= schedule.tile_n &&
                          geometry.run <= kLongestKnownFilter && roomy;
  return geometry;
}

}  // namespace laneshift::compiler
