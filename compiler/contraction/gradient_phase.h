// GradientPhase: the pixels of x whose gradient is one convolution with stride 1 over the gradient of y.
//
// In each dimension pixel i of x meets tap t where i + pad - t * dilation is a multiple of the stride. The pixels with
// one remainder by the stride therefore meet the same taps, every (stride / gcd(stride, dilation))-th one. With
// stride 1 all pixels are one phase. The taps come in descending order, so that the positions that they read ascend.
//
// Thread-safety: values and pure functions.
#pragma once

#include <vector>

#include "laneshift/problem.h"

namespace laneshift::compiler {

struct GradientPhase {
  Spatial first{};                 // pixel of x; the next ones are a stride of the forward convolution apart
  Spatial pixels{};                // how many there are
  Spatial taps{};                  // that meet them; where none does, one that reads outside of the gradient of y
  Spatial last_tap{}, tap_step{};  // tap u of the phase is tap last_tap - u * tap_step of the filter
  // Pixel j of the phase and tap u of the phase meet pixel j - pad + u * dilation of y. A negative pad crops.
  Spatial pad{}, dilation{};
};

// Those that have pixels, by falling number of taps. REQUIRES: the problem is complete.
std::vector<GradientPhase> PhasesOf(const ConvProblem& problem);

// All phases at once: a convolution with stride 1 over the gradient of y that computes, at each position, a patch of
// adjacent pixels of x, one of each phase. Its taps are those that any of them meets.
struct GradientPatch {
  Spatial size{};     // pixels of a patch: those of one period of the stride
  Spatial patches{};  // how many there are; the last ones may have pixels after the end of x
  Spatial taps{};     // where none meets any pixel, one that reads outside of the gradient of y
  // Patch j and tap u meet pixel j - pad + u * dilation of y.
  Spatial pad{}, dilation{};
  // Pixel i of a patch meets it with tap (last_tap + i - u * tap_step) / the problem's dilation of the filter, where
  // that is a whole number and one of its taps.
  Spatial last_tap{}, tap_step{};
  Spatial taps_of_phases{};  // together, those of GradientPhase

  int64_t Pixels() const { return size[kDepth] * size[kHeight] * size[kWidth]; }
};
// REQUIRES: the problem is complete.
GradientPatch PatchOf(const ConvProblem& problem);

}  // namespace laneshift::compiler
