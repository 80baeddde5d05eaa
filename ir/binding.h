// The parameters of a kernel: what the runtime passes to each, by name.
//
// Thread-safety: values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/layout.h"

namespace laneshift::ir {

enum class ParamKind : uint8_t { kTensorMap, kPointer, kInt64, kInt32, kFloat };

// What the runtime passes to a kernel parameter, in families.
// FAMILY(Name, text, kind, members): `members` has one letter for each binding of the family, which is the last letter
// of the binding's text: operands a to d, dimensions from width to depth, numbers. A space means that no binding has
// this index. "": the family has one binding, whose text is the family's.
#define LS_BINDING_FAMILIES(FAMILY)                                                                            \
  FAMILY(Map, "map_", kTensorMap, "ab d")                                                                      \
  FAMILY(MapEdge, "map_edge", kTensorMap, "")                                                                  \
  FAMILY(MapDRest, "map_d_rest", kTensorMap, "")                                                               \
  FAMILY(MapScale, "map_scale_", kTensorMap, "ab")                                                             \
  FAMILY(MapMetadata, "map_metadata_", kTensorMap, "a")                                                        \
  FAMILY(Base, "base_", kPointer, "abcd")                                                                      \
  FAMILY(BaseBias, "base_bias", kPointer, "")                                                                  \
  FAMILY(BaseScale, "base_scale_", kPointer, "ab d")                                                           \
  FAMILY(BaseTensorScale, "base_tensor_scale_", kPointer, "ab")                                                \
  FAMILY(BaseBlockScale, "base_block_scale_", kPointer, "   d")                                                \
  FAMILY(Workspace, "workspace", kPointer, "")                                                                 \
  FAMILY(Stamps, "stamps", kPointer, "")                                                                       \
  FAMILY(Pitch, "pitch_", kInt64, "abcd")                                                                      \
  FAMILY(Stride, "stride_", kInt64, "abcd")                                                                    \
  FAMILY(Row, "row_", kInt64, "abcd")                                                                          \
  FAMILY(Plane, "plane_", kInt64, "abcd")                                                                      \
  FAMILY(M, "m", kInt32, "")                                                                                   \
  FAMILY(N, "n", kInt32, "")                                                                                   \
  FAMILY(K, "k", kInt32, "")                                                                                   \
  FAMILY(Batch, "batch", kInt32, "")                                                                           \
  FAMILY(Columns, "columns", kInt32, "")                                                                       \
  FAMILY(Channels, "channels", kInt32, "")                                                                     \
  FAMILY(Filters, "filters", kInt32, "")                                                                       \
  FAMILY(PaddedQ, "padded_q", kInt32, "")                                                                      \
  FAMILY(Out, "out_", kInt32, "qpo")                                                                           \
  FAMILY(In, "in_", kInt32, "whd")                                                                             \
  FAMILY(Taps, "taps_", kInt32, "srt")                                                                         \
  FAMILY(LastTap, "last_tap_", kInt32, "srt")                                                                  \
  FAMILY(TapStep, "tap_step_", kInt32, "srt")                                                                  \
  FAMILY(FirstTap, "first_tap", kInt32, "")                                                                    \
  FAMILY(TapMove, "tap_move_", kInt32, "srt")                                                                  \
  FAMILY(ConvStride, "conv_stride_", kInt32, "whd")                                                            \
  FAMILY(Pad, "pad_", kInt32, "whd")                                                                           \
  FAMILY(Dilation, "dilation_", kInt32, "whd")                                                                 \
  FAMILY(Pixels, "pixels_", kInt32, "whd")                                                                     \
  FAMILY(StoredTaps, "stored_taps_", kInt32, "srt")                                                            \
  FAMILY(TapDilation, "tap_dilation_", kInt32, "srt")                                                          \
  FAMILY(Alpha, "alpha", kFloat, "")                                                                           \
  FAMILY(Beta, "beta", kFloat, "")                                                                             \
  /* operands and numbers of the epilogue */                                                                   \
  FAMILY(BaseE, "base_e", kPointer, "01234567")                                                                \
  FAMILY(NumberE, "number_e", kFloat, "01234567")                                                              \
  /* sums that a kernel adds up in a fixed order */                                                            \
  FAMILY(BasePartialRows, "base_partial_rows", kPointer, "01234567")                                           \
  FAMILY(LengthPartialRows, "length_partial_rows", kInt32, "01234567")                                         \
  FAMILY(CountPartialRows, "count_partial_rows", kInt32, "01234567")                                           \
  /* where groups of rows begin, and the last one ends; or their sizes, and the rows that each has room for */ \
  FAMILY(GroupOffsets, "group_offsets", kPointer, "")                                                          \
  FAMILY(GroupSizes, "group_sizes", kPointer, "")                                                              \
  FAMILY(GroupRows, "group_rows", kInt32, "")                                                                  \
  /* the rows of A and D that rows of groups are, and how many A and D have */                                 \
  FAMILY(RowIndices, "row_indices_", kPointer, "a  d")                                                         \
  FAMILY(StoredRows, "stored_rows_", kInt32, "a  d")                                                           \
  /* 1 where the launch before is of the same plan, and neither reads what the other one writes; else 0 */     \
  FAMILY(Follows, "follows", kInt32, "")                                                                       \
  /* of packed images: all lines, and the pieces of 16 bytes of a line */                                      \
  FAMILY(PackedLines, "packed_lines", kInt32, "")                                                              \
  FAMILY(PackedPieces, "packed_pieces", kInt32, "")

enum class BindingFamily : uint8_t {
#define LS_FAMILY_ENUM(Name, text, kind, members) k##Name,
  LS_BINDING_FAMILIES(LS_FAMILY_ENUM)
#undef LS_FAMILY_ENUM
};

// The bindings that have a name in code; the functions below make the others.
// BINDING(Name, Family, index)
// clang-format off
#define LS_OPERAND_BINDINGS(BINDING, Family) \
  BINDING(Family##A, Family, 0) BINDING(Family##B, Family, 1) BINDING(Family##C, Family, 2) BINDING(Family##D, Family, 3)
#define LS_SPATIAL_BINDINGS(BINDING, Family) \
  BINDING(Family##W, Family, 0) BINDING(Family##H, Family, 1) BINDING(Family##D, Family, 2)
#define LS_NAMED_BINDINGS(BINDING) \
  BINDING(MapA, Map, 0) BINDING(MapB, Map, 1) BINDING(MapD, Map, 3) \
  BINDING(MapEdge, MapEdge, 0) BINDING(MapDRest, MapDRest, 0) \
  BINDING(MapScaleA, MapScale, 0) BINDING(MapScaleB, MapScale, 1) BINDING(MapMetadataA, MapMetadata, 0) \
  LS_OPERAND_BINDINGS(BINDING, Base) BINDING(BaseBias, BaseBias, 0) BINDING(Workspace, Workspace, 0) BINDING(Stamps, Stamps, 0) \
  BINDING(BaseScaleA, BaseScale, 0) BINDING(BaseScaleB, BaseScale, 1) BINDING(BaseScaleD, BaseScale, 3) \
  BINDING(BaseTensorScaleA, BaseTensorScale, 0) BINDING(BaseTensorScaleB, BaseTensorScale, 1) \
  BINDING(BaseBlockScaleD, BaseBlockScale, 3) \
  LS_OPERAND_BINDINGS(BINDING, Pitch) LS_OPERAND_BINDINGS(BINDING, Stride) \
  LS_OPERAND_BINDINGS(BINDING, Row) LS_OPERAND_BINDINGS(BINDING, Plane) \
  BINDING(M, M, 0) BINDING(N, N, 0) BINDING(K, K, 0) BINDING(Batch, Batch, 0) BINDING(Columns, Columns, 0) \
  BINDING(Channels, Channels, 0) BINDING(Filters, Filters, 0) BINDING(PaddedQ, PaddedQ, 0) \
  BINDING(OutQ, Out, 0) BINDING(OutP, Out, 1) BINDING(OutO, Out, 2) LS_SPATIAL_BINDINGS(BINDING, In) \
  BINDING(TapsS, Taps, 0) BINDING(TapsR, Taps, 1) BINDING(TapsT, Taps, 2) \
  BINDING(LastTapS, LastTap, 0) BINDING(LastTapR, LastTap, 1) BINDING(LastTapT, LastTap, 2) \
  BINDING(TapStepS, TapStep, 0) BINDING(TapStepR, TapStep, 1) BINDING(TapStepT, TapStep, 2) \
  BINDING(FirstTap, FirstTap, 0) \
  BINDING(TapMoveS, TapMove, 0) BINDING(TapMoveR, TapMove, 1) BINDING(TapMoveT, TapMove, 2) \
  LS_SPATIAL_BINDINGS(BINDING, ConvStride) \
  LS_SPATIAL_BINDINGS(BINDING, Pad) LS_SPATIAL_BINDINGS(BINDING, Dilation) LS_SPATIAL_BINDINGS(BINDING, Pixels) \
  BINDING(StoredTapsS, StoredTaps, 0) BINDING(StoredTapsR, StoredTaps, 1) BINDING(StoredTapsT, StoredTaps, 2) \
  BINDING(TapDilationS, TapDilation, 0) BINDING(TapDilationR, TapDilation, 1) BINDING(TapDilationT, TapDilation, 2) \
  BINDING(Alpha, Alpha, 0) BINDING(Beta, Beta, 0) BINDING(GroupOffsets, GroupOffsets, 0) \
  BINDING(GroupSizes, GroupSizes, 0) BINDING(GroupRows, GroupRows, 0) BINDING(Follows, Follows, 0) \
  BINDING(RowIndicesA, RowIndices, 0) BINDING(RowIndicesD, RowIndices, 3) \
  BINDING(StoredRowsA, StoredRows, 0) BINDING(StoredRowsD, StoredRows, 3) \
  BINDING(PackedLines, PackedLines, 0) BINDING(PackedPieces, PackedPieces, 0)
// clang-format on

struct Binding {
  BindingFamily family = BindingFamily::kMap;
  uint8_t index = 0;  // in the family

  auto operator<=>(const Binding&) const = default;

#define LS_BINDING_NAME(Name, Family, index) static const Binding k##Name;
  LS_NAMED_BINDINGS(LS_BINDING_NAME)
#undef LS_BINDING_NAME
};
#define LS_BINDING_VALUE(Name, Family, index) \
  inline constexpr Binding Binding::k##Name{BindingFamily::k##Family, index};
LS_NAMED_BINDINGS(LS_BINDING_VALUE)
#undef LS_BINDING_VALUE

struct BindingFamilyInfo {
  std::string_view text;
  ParamKind kind;
  std::string_view members;  // as in LS_BINDING_FAMILIES
};
const BindingFamilyInfo& InfoOf(BindingFamily family);
constexpr size_t CountOf(std::string_view members) {
  size_t count = members.empty() ? 1 : 0;
  for (const char member : members) count += member != ' ';
  return count;
}
inline constexpr size_t kBindingCount = 0
#define LS_COUNT_MEMBERS(Name, text, kind, members) +CountOf(members)
    LS_BINDING_FAMILIES(LS_COUNT_MEMBERS)
#undef LS_COUNT_MEMBERS
    ;
inline ParamKind KindOf(Binding binding) { return InfoOf(binding.family).kind; }
// "map_a"; "?" for a value that is not a binding, so that a broken program can still be printed.
std::string PrintBinding(Binding binding);
std::optional<Binding> ParseBinding(std::string_view text);
// Every binding, one family after the other.
const std::vector<Binding>& AllBindings();

// The matrices of a problem.
enum class Operand : uint8_t { kA, kB, kC, kD };
std::string_view OperandName(Operand operand);
constexpr Binding OfOperand(BindingFamily family, Operand operand) { return {family, static_cast<uint8_t>(operand)}; }
// The bindings of an operand's tensor map, base pointer, pitch and batch stride. REQUIRES: the operand has that
// binding; C has no tensor map.
Binding MapOf(Operand operand);
// What an operand consists of in memory.
enum class OperandComponent : uint8_t { kElements, kScales, kMetadata };
// The tensor map of a part. REQUIRES: the operand has it.
Binding MapOf(Operand operand, OperandComponent component);
constexpr Binding BaseOf(Operand operand) { return OfOperand(BindingFamily::kBase, operand); }
constexpr Binding PitchOf(Operand operand) { return OfOperand(BindingFamily::kPitch, operand); }
constexpr Binding StrideOf(Operand operand) { return OfOperand(BindingFamily::kStride, operand); }

// The operands and numbers of the epilogue, in order. REQUIRES: the index is in range.
Binding EpilogueBase(int operand);
Binding EpilogueNumber(int number);

// Of reductions in a fixed order: where their partial rows are, how long these are, and how many.
Binding BaseOfPartialRows(int reduction);
Binding LengthOfPartialRows(int reduction);
Binding CountOfPartialRows(int reduction);

// What a kernel knows of one spatial dimension of a convolution; in kSpatialBindings width, height, depth.
struct SpatialBindings {
  Binding extent;                 // of x
  Binding outputs;                // positions of the implicit-GEMM index
  Binding taps;                   // of the filter
  Binding stride, pad, dilation;  // stride, padding before the first pixel (negative: cropping), dilation
  Binding last_tap, tap_step;     // tap u is tap last_tap - u * tap_step of the filter in memory; of packed filters
  Binding tap_move;               // the same, counted over all taps in memory: first_tap + u * tap_move
  // Where a row of D is a patch of pixels: those that D has, and of pixel i of the patch tap u is tap
  // (last_tap + i - u * tap_step) / tap_dilation of the stored_taps ones in memory, where that is whole and one of them.
  Binding pixels, stored_taps, tap_dilation;
};
inline constexpr SpatialBindings kSpatialBindings[] = {
    {Binding::kInW, Binding::kPaddedQ, Binding::kTapsS, Binding::kConvStrideW, Binding::kPadW, Binding::kDilationW,
     Binding::kLastTapS, Binding::kTapStepS, Binding::kTapMoveS, Binding::kPixelsW, Binding::kStoredTapsS,
     Binding::kTapDilationS},
    {Binding::kInH, Binding::kOutP, Binding::kTapsR, Binding::kConvStrideH, Binding::kPadH, Binding::kDilationH,
     Binding::kLastTapR, Binding::kTapStepR, Binding::kTapMoveR, Binding::kPixelsH, Binding::kStoredTapsR,
     Binding::kTapDilationR},
    {Binding::kInD, Binding::kOutO, Binding::kTapsT, Binding::kConvStrideD, Binding::kPadD, Binding::kDilationD,
     Binding::kLastTapT, Binding::kTapStepT, Binding::kTapMoveT, Binding::kPixelsD, Binding::kStoredTapsT,
     Binding::kTapDilationT},
};

// The bindings of the row and plane strides of an operand of a convolution. The pixels of an activation are PitchOf
// apart and its images StrideOf; the filters of B are PitchOf apart and its taps StrideOf.
struct PixelPitches {
  Binding row, plane;
};
constexpr PixelPitches PixelPitchesOf(Operand operand) {
  return {OfOperand(BindingFamily::kRow, operand), OfOperand(BindingFamily::kPlane, operand)};
}

struct Param {
  Binding binding;
  SharedLayout box{};  // of a tensor map: the shared-memory tile whose columns are its boxes

  bool operator==(const Param&) const = default;
};

}  // namespace laneshift::ir
