// The parameters of a kernel: what the runtime passes to each, by name.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/layout.h"

namespace laneshift::ir {

// What the runtime passes to a kernel parameter.
// BINDING(Name, text, kind); numbered ones are of the epilogue's operands, numbers and sums (below).
#define LS_NUMBERED_BINDINGS(BINDING, Name, text, kind) \
  BINDING(Name##0, text "0", kind)                      \
  BINDING(Name##1, text "1", kind)                      \
  BINDING(Name##2, text "2", kind)                      \
  BINDING(Name##3, text "3", kind)                      \
  BINDING(Name##4, text "4", kind)                      \
  BINDING(Name##5, text "5", kind)                      \
  BINDING(Name##6, text "6", kind)                      \
  BINDING(Name##7, text "7", kind)
#define LS_BINDINGS(BINDING)                                 \
  BINDING(MapA, "map_a", kTensorMap)                         \
  BINDING(MapEdge, "map_edge", kTensorMap)                   \
  BINDING(MapB, "map_b", kTensorMap)                         \
  BINDING(MapD, "map_d", kTensorMap)                         \
  BINDING(MapDRest, "map_d_rest", kTensorMap)                \
  BINDING(BaseA, "base_a", kPointer)                         \
  BINDING(BaseB, "base_b", kPointer)                         \
  BINDING(BaseC, "base_c", kPointer)                         \
  BINDING(BaseD, "base_d", kPointer)                         \
  BINDING(BaseBias, "base_bias", kPointer)                   \
  BINDING(BaseScaleA, "base_scale_a", kPointer)              \
  BINDING(BaseScaleB, "base_scale_b", kPointer)              \
  BINDING(BaseScaleD, "base_scale_d", kPointer)              \
  BINDING(Workspace, "workspace", kPointer)                  \
  BINDING(PitchA, "pitch_a", kInt64)                         \
  BINDING(PitchB, "pitch_b", kInt64)                         \
  BINDING(PitchC, "pitch_c", kInt64)                         \
  BINDING(PitchD, "pitch_d", kInt64)                         \
  BINDING(StrideA, "stride_a", kInt64)                       \
  BINDING(StrideB, "stride_b", kInt64)                       \
  BINDING(StrideC, "stride_c", kInt64)                       \
  BINDING(StrideD, "stride_d", kInt64)                       \
  BINDING(RowA, "row_a", kInt64)                             \
  BINDING(RowB, "row_b", kInt64)                             \
  BINDING(RowC, "row_c", kInt64)                             \
  BINDING(RowD, "row_d", kInt64)                             \
  BINDING(PlaneA, "plane_a", kInt64)                         \
  BINDING(PlaneB, "plane_b", kInt64)                         \
  BINDING(PlaneC, "plane_c", kInt64)                         \
  BINDING(PlaneD, "plane_d", kInt64)                         \
  BINDING(M, "m", kInt32)                                    \
  BINDING(N, "n", kInt32)                                    \
  BINDING(K, "k", kInt32)                                    \
  BINDING(Batch, "batch", kInt32)                            \
  BINDING(Columns, "columns", kInt32)                        \
  BINDING(Channels, "channels", kInt32)                      \
  BINDING(Filters, "filters", kInt32)                        \
  BINDING(WalkQ, "walk_q", kInt32)                           \
  BINDING(OutQ, "out_q", kInt32)                             \
  BINDING(OutP, "out_p", kInt32)                             \
  BINDING(OutO, "out_o", kInt32)                             \
  BINDING(InW, "in_w", kInt32)                               \
  BINDING(InH, "in_h", kInt32)                               \
  BINDING(InD, "in_d", kInt32)                               \
  BINDING(TapsS, "taps_s", kInt32)                           \
  BINDING(TapsR, "taps_r", kInt32)                           \
  BINDING(TapsT, "taps_t", kInt32)                           \
  BINDING(StepW, "step_w", kInt32)                           \
  BINDING(StepH, "step_h", kInt32)                           \
  BINDING(StepD, "step_d", kInt32)                           \
  BINDING(PadW, "pad_w", kInt32)                             \
  BINDING(PadH, "pad_h", kInt32)                             \
  BINDING(PadD, "pad_d", kInt32)                             \
  BINDING(SpreadW, "spread_w", kInt32)                       \
  BINDING(SpreadH, "spread_h", kInt32)                       \
  BINDING(SpreadD, "spread_d", kInt32)                       \
  BINDING(Alpha, "alpha", kFloat)                            \
  BINDING(Beta, "beta", kFloat)                              \
  LS_NUMBERED_BINDINGS(BINDING, BaseE, "base_e", kPointer)   \
  LS_NUMBERED_BINDINGS(BINDING, NumberE, "number_e", kFloat) \
  LS_NUMBERED_BINDINGS(BINDING, BaseT, "base_t", kPointer)   \
  LS_NUMBERED_BINDINGS(BINDING, LengthT, "length_t", kInt32) \
  LS_NUMBERED_BINDINGS(BINDING, LinesT, "lines_t", kInt32)

enum class ParamKind : uint8_t { kTensorMap, kPointer, kInt64, kInt32, kFloat };
enum class Binding : uint8_t {
#define LS_BINDING_ENUM(Name, text, kind) k##Name,
  LS_BINDINGS(LS_BINDING_ENUM)
#undef LS_BINDING_ENUM
};
struct BindingInfo {
  std::string_view name;
  ParamKind kind;
};
const BindingInfo& InfoOf(Binding binding);

// The matrices of a problem.
enum class Operand : uint8_t { kA, kB, kC, kD };
std::string_view OperandName(Operand operand);
// The bindings of an operand's tensor map, base pointer, pitch and batch stride. REQUIRES: the operand has that
// binding.
Binding MapOf(Operand operand);
Binding BaseOf(Operand operand);
Binding PitchOf(Operand operand);
Binding StrideOf(Operand operand);

// The operands and numbers of the epilogue, in order.
Binding EpilogueBase(int operand);
Binding EpilogueNumber(int number);

// Of the sums that a kernel adds up in a fixed order: where their lines are, how long those are, and how many.
Binding BaseOfLines(int total);
Binding LengthOfLines(int total);
Binding CountOfLines(int total);

// What a kernel knows of one spatial dimension of a convolution; in kSpatialBindings width, height, depth.
struct SpatialBindings {
  Binding extent;             // of x
  Binding outputs;            // positions of the walk
  Binding taps;               // of the filter
  Binding step, pad, spread;  // stride, padding before the first pixel, dilation
};
inline constexpr SpatialBindings kSpatialBindings[] = {
    {Binding::kInW, Binding::kWalkQ, Binding::kTapsS, Binding::kStepW, Binding::kPadW, Binding::kSpreadW},
    {Binding::kInH, Binding::kOutP, Binding::kTapsR, Binding::kStepH, Binding::kPadH, Binding::kSpreadH},
    {Binding::kInD, Binding::kOutO, Binding::kTapsT, Binding::kStepD, Binding::kPadD, Binding::kSpreadD},
};

// The bindings of the row and plane distances of an operand of a convolution; the pixels of an activation are PitchOf
// and its images StrideOf apart, the filters of B are PitchOf and its taps StrideOf apart.
struct WalkBindings {
  Binding row, plane;
};
WalkBindings WalkOf(Operand operand);

struct Param {
  Binding binding;
  SharedLayout box{};  // of a tensor map: the shared-memory tile whose columns are its boxes

  bool operator==(const Param&) const = default;
};

}  // namespace laneshift::ir
