// What the rules and the one-line form of ConvProblem share.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <string_view>

#include "ir/epilogue_steps.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

// Rows of y are pixels: no vector goes along them.
constexpr AxisLetters kConvLetters = {'\0', 'k'};

// One of x, w, z and y: `outer` images or filters of extents[0] x [1] x [2] runs of `inner` contiguous elements.
struct ConvTensor {
  ConvPitches ConvProblem::*pitches;
  int64_t outer;
  Spatial extents;
  int64_t inner;
};
// REQUIRES: extents, strides and groups keep the rules.
std::array<ConvTensor, 4> ConvTensors(const ConvProblem& problem);

// From the innermost.
constexpr int64_t ConvPitches::*kDistances[] = {&ConvPitches::pixel, &ConvPitches::row, &ConvPitches::plane,
                                                &ConvPitches::image};

// The pitches that the tensor has where `given` leaves them open.
ConvPitches PackedPitches(const ConvTensor& tensor, const ConvPitches& given);

// "x_row", "w_tap".
std::string_view PitchKey(ConvPitches ConvProblem::*tensor, int64_t ConvPitches::*distance);

// Every rule except for those between pitches, which need them filled in.
Status ValidateConv(const ConvProblem& problem);

}  // namespace laneshift::ir
