// What the rules and the one-line form of ConvProblem share.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <string_view>

#include "ir/epilogue_steps.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

// Rows of D are pixels: no vector goes along them. Its columns are the channels of y, or of the gradient of x.
constexpr AxisLetters LettersOf(ConvPass pass) { return {'\0', pass == ConvPass::kForward ? 'k' : 'c'}; }

// "conv", "conv_dgrad", "conv_wgrad".
constexpr std::string_view kPassNames[] = {"conv", "conv_dgrad", "conv_wgrad"};
constexpr std::string_view NameOf(ConvPass pass) { return kPassNames[static_cast<size_t>(pass)]; }

// The tensors of a convolution; z has the layout of the one that the pass computes.
enum class ConvOperand : uint8_t { kX, kW, kZ, kY };
constexpr size_t kConvOperands = 4;

// Those that are A, B, C and D of the pass as a GEMM.
constexpr std::array<ConvOperand, kConvOperands> OperandsOf(ConvPass pass) {
  using enum ConvOperand;
  switch (pass) {
    case ConvPass::kForward:
      return {kX, kW, kZ, kY};
    case ConvPass::kDgrad:
      return {kY, kW, kZ, kX};
    case ConvPass::kWgrad:
      return {kY, kX, kZ, kW};
  }
  __builtin_unreachable();
}

// The fields of a tensor.
struct ConvFields {
  std::string_view name, align_key;
  DataType ConvProblem::*type;
  int64_t ConvProblem::*align;
};
constexpr ConvFields kConvFields[kConvOperands] = {{"x", "align_x", &ConvProblem::x, &ConvProblem::align_x},
                                                   {"w", "align_w", &ConvProblem::w, &ConvProblem::align_w},
                                                   {"z", "align_z", &ConvProblem::z, &ConvProblem::align_z},
                                                   {"y", "align_y", &ConvProblem::y, &ConvProblem::align_y}};
constexpr const ConvFields& FieldsOf(ConvOperand operand) { return kConvFields[static_cast<size_t>(operand)]; }
// Of A, B, C or D.
constexpr const ConvFields& FieldsOf(ConvPass pass, size_t role) { return FieldsOf(OperandsOf(pass)[role]); }
constexpr size_t kConvA = 0, kConvB = 1, kConvD = 3;
// The type of what the pass computes.
constexpr DataType ResultTypeOf(const ConvProblem& problem) { return problem.*FieldsOf(problem.pass, kConvD).type; }

// One of x, w, z and y: `outer` images or filters of extents[0] x [1] x [2] runs of `inner` contiguous elements.
struct ConvTensor {
  ConvPitches ConvProblem::*pitches;
  int64_t outer;
  Spatial extents;
  int64_t inner;
};
// In the order of ConvOperand. REQUIRES: extents, strides and groups keep the rules.
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
