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

int DirectRunOf(const Schedule& schedule, ConvPass pass) {
  constexpr int kRunsOfWarpgroup = 4 * 4;  // four warps, each of which has four runs of positions
  if (pass == ConvPass::kWgrad) return std::max(1, schedule.tile_k / kDirectRunsOfBlock);
  return std::max(1, schedule.tile_m / (kRunsOfWarpgroup * schedule.math_warpgroups));
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
  if (schedule.reuse == Reuse::kDirect) geometry.direct_run = DirectRunOf(schedule, problem.pass);
  geometry.padded_q =
      base::RoundUp(geometry.output[kWidth] + (masks ? 0 : geometry.halo), int64_t{geometry.direct_run});
  if (schedule.reuse == Reuse::kLaneShift && schedule.shift == ShiftForm::kFused) {
    for (int chain = 0; chain < geometry.Chains(); ++chain) {
      const std::vector<ConvGeometry::Column> columns = geometry.ColumnsOf(chain);
      geometry.stale = std::max(geometry.stale, columns.back().row - columns.front().row);
    }
  }
  geometry.positions = problem.n * geometry.output[kDepth] * geometry.output[kHeight] * geometry.padded_q;
  geometry.run = schedule.a_load == LoadPath::kCopy ? geometry.channels * geometry.taps : geometry.channels;
  const bool roomy = schedule.tile_n <= kNarrowTile || schedule.tile_k <= kShortBlock;
  geometry.known_filter = schedule.a_load == LoadPath::kCopy && GatherWidth(images) == 1 && problem.groups == 1 &&
                          !geometry.one_of_several && geometry.filters <= schedule.tile_n &&
                          geometry.run <= kLongestKnownFilter && roomy;
  return geometry;
}

}  // namespace laneshift::compiler
