#include "compiler/contraction/gradient_phase.h"

#include <algorithm>
#include <numeric>

#include "base/integer_math.h"

namespace laneshift::compiler {
namespace {

// One dimension: pixels `first`, first + stride, ….
void PlanDimension(const ConvProblem& p, size_t d, int64_t first, GradientPhase& phase) {
  const int64_t stride = p.stride[d], dilation = p.dilation[d];
  phase.first[d] = first;
  phase.pixels[d] = base::CeilDiv(p.input[d] - first, stride);
  const auto meets = [&](int64_t tap) { return (first + p.pad_before[d] - tap * dilation) % stride == 0; };
  int64_t tap = 0;
  while (tap < p.filter[d] && !meets(tap)) ++tap;
  phase.taps[d] = 1;
  phase.tap_step[d] = stride / std::gcd(stride, dilation);
  phase.dilation[d] = dilation / std::gcd(stride, dilation);
  if (tap == p.filter[d]) {
    phase.pad[d] = phase.pixels[d];  // every pixel reads before the first one
    return;
  }
  phase.taps[d] = base::CeilDiv(p.filter[d] - tap, phase.tap_step[d]);
  phase.last_tap[d] = tap + (phase.taps[d] - 1) * phase.tap_step[d];
  phase.pad[d] = (phase.taps[d] - 1) * phase.dilation[d] - (first + p.pad_before[d] - tap * dilation) / stride;
}

// One dimension. Pixel i of patch j meets tap t at pixel j + offset of y, where
// offset * stride = i + pad - t * dilation.
void PlanDimension(const ConvProblem& p, size_t d, GradientPatch& patch) {
  const int64_t stride = p.stride[d], dilation = p.dilation[d];
  patch.size[d] = std::min(stride, p.input[d]);
  patch.patches[d] = base::CeilDiv(p.input[d], patch.size[d]);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < patch.size[d]; ++i) {
    const size_t before = offsets.size();
    for (int64_t tap = 0; tap < p.filter[d]; ++tap) {
      const int64_t distance = i + p.pad_before[d] - tap * dilation;
      if (distance % stride == 0) offsets.push_back(distance / stride);
    }
    patch.taps_of_phases[d] += std::max<int64_t>(1, static_cast<int64_t>(offsets.size() - before));
  }
  if (offsets.empty()) offsets.push_back(-patch.patches[d]);  // every patch reads before the first pixel
  std::sort(offsets.begin(), offsets.end());
  int64_t step = 0;
  for (const int64_t offset : offsets) step = std::gcd(step, offset - offsets.front());
  patch.dilation[d] = std::max<int64_t>(step, 1);
  patch.taps[d] = (offsets.back() - offsets.front()) / patch.dilation[d] + 1;
  patch.pad[d] = -offsets.front();
  patch.last_tap[d] = p.pad_before[d] + stride * patch.pad[d];
  patch.tap_step[d] = stride * patch.dilation[d];
}

}  // namespace

GradientPatch PatchOf(const ConvProblem& p) {
  GradientPatch patch;
  for (size_t d = 0; d < p.stride.size(); ++d) PlanDimension(p, d, patch);
  return patch;
}

std::vector<GradientPhase> PhasesOf(const ConvProblem& p) {
  std::vector<GradientPhase> phases;
  const auto residues = [&](int d) {
    return std::min(p.stride[static_cast<size_t>(d)], p.input[static_cast<size_t>(d)]);
  };
  for (int64_t depth = 0; depth < residues(kDepth); ++depth) {
    for (int64_t height = 0; height < residues(kHeight); ++height) {
      for (int64_t width = 0; width < residues(kWidth); ++width) {
        GradientPhase& phase = phases.emplace_back();
        PlanDimension(p, kDepth, depth, phase);
        PlanDimension(p, kHeight, height, phase);
        PlanDimension(p, kWidth, width, phase);
      }
    }
  }
  const auto taps = [](const GradientPhase& phase) {
    return phase.taps[kDepth] * phase.taps[kHeight] * phase.taps[kWidth];
  };
  std::stable_sort(phases.begin(), phases.end(),
                   [&](const GradientPhase& a, const GradientPhase& b) { return taps(a) > taps(b); });
  return phases;
}

}  // namespace laneshift::compiler
