// The vocabulary of the text form: the names of enumerators and, per struct, the list of fields that are printed and
// parsed. A new attribute is one more member and one more row here; a member without a row does not compile.
//
// Private to the printer, the parser, the verifier and the tests of ir/. Thread-safety: constants and pure functions.
#pragma once

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace laneshift::ir {

// Names of an enum's values, in order.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> kEnumNames{};
template <>
inline constexpr auto kEnumNames<DataType> = std::to_array<std::string_view>({
#define DATA_TYPE(Name, text, ...) text,
#include "ir/element_types.def"
});
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<OutputScaling>{"none", "mx", "nv"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<BiasAxis>{"none", "m", "n"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<Axis>{"m", "n", "k"};
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<Swizzle>{"none", "32", "64", "128"};
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<Operand>{"a", "b", "c", "d"};
template <>
inline constexpr std::array<std::string_view, 6> kEnumNames<FunctionOperand>{"row",    "column", "element",
                                                                             "output", "table",  "number"};
template <>
inline constexpr std::array<std::string_view, 7> kEnumNames<FragmentKind>{
    "row_per_lane", "mma_16x8", "mma_16x8_gated", "row_per_two_lanes", "mma_8x8", "runs_4", "runs_8"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Combine>{"add", "multiply"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Reduction>{"sum", "amax"};
template <>
inline constexpr std::array<std::string_view, 12> kEnumNames<Function>{"identity",  "relu", "leaky_relu", "gelu",
                                                                       "gelu_tanh", "silu", "sigmoid",    "tanh",
                                                                       "clamp",     "rint", "cut_bf16",   "cut_f16"};
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<RowMap>{"matrix", "pixels", "filters", "groups"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Side>{"full", "empty"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Edge>{"before", "after"};
template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<StampEvent>{"begin", "tile", "wait", "resume", "end"};
template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<WorkSource>{"static", "launch_control", "groups",
                                                                        "masked_groups", "parts_of_k"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Unit>{"thread", "warp"};
template <>
inline constexpr std::array<std::string_view, 6> kEnumNames<MulticastScope>{"own", "m", "n", "cross", "leader", "all"};
template <>
inline constexpr std::array<std::string_view, 3> kEnumNames<OperandComponent>{"elements", "scales", "metadata"};
template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<Space>{"shared", "tensor", "clc_responses", "order",
                                                                   "sums"};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Stage>{"scheduled", "lowered"};
template <>
inline constexpr std::array<std::string_view, 6> kEnumNames<RoleKind>{"load",     "copy", "mma",
                                                                      "epilogue", "math", "schedule"};
template <>
inline constexpr std::array<std::string_view, 9> kEnumNames<ValueType>{
    "none", "index", "predicate", "slot", "fragment", "lane_mask", "scale_factors", "rows", "metadata"};

// The name of a value; "?" for one that is not an enumerator, so that a broken program can still be printed.
template <typename Enum>
constexpr std::string_view NameOf(Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < kEnumNames<Enum>.size() ? kEnumNames<Enum>[index] : "?";
}

enum class Presence : uint8_t {
  kBare,      // only its value, first and in order
  kAlways,    // key=value
  kOptional,  // key=value, unless it has the value of a default-constructed struct
};

// The meaning of an int. A bool is a flag: only the key, or nothing.
enum class Meaning : uint8_t {
  kNumber,
  kOffset,    // a byte offset: @16384
  kChannel,   // an index into Program::channels, by name
  kBuffer,    // an index into Program::buffers, by name
  kTile,      // an index into the tiles of the channel of the op's last slot operand, by name
  kText,      // words that are not a name of the program
  kFunction,  // an index into the program's functions, by name
  kTileA,     // the same for the slot operand before it
};

template <typename Struct, typename T>
struct Field {
  using Owner = Struct;
  std::string_view name;
  T Struct::*member;
  Presence presence = Presence::kAlways;
  Meaning meaning = Meaning::kNumber;
};
template <typename Struct, typename T, typename... Rest>
Field(const char*, T Struct::*, Rest...) -> Field<Struct, T>;

// Several numbers for one key: tile=128x256x64.
template <typename Struct, size_t kCount>
struct JoinedField {
  using Owner = Struct;
  std::string_view name;
  char separator;
  std::array<int Struct::*, kCount> members;
  Presence presence = Presence::kAlways;
};
template <typename Struct, size_t kCount, typename... Rest>
JoinedField(const char*, char, std::array<int Struct::*, kCount>, Rest...) -> JoinedField<Struct, kCount>;

// clang-format off
template <typename Struct>
inline constexpr std::tuple<> kFields{};

template <> inline constexpr auto kFields<ConstAttrs> = std::tuple{
    Field{"value", &ConstAttrs::value, Presence::kBare}};
template <> inline constexpr auto kFields<ParamAttrs> = std::tuple{
    Field{"binding", &ParamAttrs::binding, Presence::kBare}};
template <> inline constexpr auto kFields<ClusterIndexAttrs> = std::tuple{
    Field{"axis", &ClusterIndexAttrs::axis, Presence::kBare}};
template <> inline constexpr auto kFields<WorkAttrs> = std::tuple{
    Field{"raster", &WorkAttrs::raster},
    Field{"source", &WorkAttrs::source, Presence::kOptional},
    Field{"slices", &WorkAttrs::slices, Presence::kOptional},
    Field{"pingpong_index", &WorkAttrs::pingpong_index, Presence::kOptional},
    Field{"pingpong_roles", &WorkAttrs::pingpong_roles, Presence::kOptional},
    Field{"row_step", &WorkAttrs::row_step, Presence::kOptional}};
template <> inline constexpr auto kFields<ForAttrs> = std::tuple{
    Field{"step", &ForAttrs::step}};
template <> inline constexpr auto kFields<ChannelAttrs> = std::tuple{
    Field{"channel", &ChannelAttrs::channel, Presence::kBare, Meaning::kChannel}};
template <> inline constexpr auto kFields<ReleaseAttrs> = std::tuple{
    Field{"lag", &ReleaseAttrs::lag}};
template <> inline constexpr auto kFields<DrainAttrs> = std::tuple{
    Field{"channel", &DrainAttrs::channel, Presence::kAlways, Meaning::kChannel},
    Field{"lag", &DrainAttrs::lag}};
template <> inline constexpr auto kFields<CursorAttrs> = std::tuple{
    Field{"channel", &CursorAttrs::channel, Presence::kBare, Meaning::kChannel},
    Field{"trail", &CursorAttrs::trail, Presence::kOptional}};
template <> inline constexpr auto kFields<BarrierAttrs> = std::tuple{
    Field{"side", &BarrierAttrs::side},
    Field{"inverted", &BarrierAttrs::inverted, Presence::kOptional},
    Field{"by", &BarrierAttrs::by, Presence::kOptional},
    Field{"to", &BarrierAttrs::to, Presence::kOptional},
    Field{"in_order", &BarrierAttrs::in_order, Presence::kOptional}};
template <> inline constexpr auto kFields<ExpectAttrs> = std::tuple{
    Field{"bytes", &ExpectAttrs::bytes},
    Field{"leader", &ExpectAttrs::leader, Presence::kOptional}};
template <> inline constexpr auto kFields<PendingAttrs> = std::tuple{
    Field{"pending", &PendingAttrs::pending}};
template <> inline constexpr auto kFields<StampAttrs> = std::tuple{
    Field{"event", &StampAttrs::event},
    Field{"id", &StampAttrs::id}};
template <> inline constexpr auto kFields<FenceAttrs> = std::tuple{
    Field{"edge", &FenceAttrs::edge}};
template <> inline constexpr auto kFields<LoadAttrs> = std::tuple{
    Field{"tile", &LoadAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"operand", &LoadAttrs::operand},
    Field{"taps", &LoadAttrs::taps, Presence::kOptional},
    Field{"transposed", &LoadAttrs::transposed, Presence::kOptional},
    Field{"to", &LoadAttrs::to, Presence::kOptional},
    Field{"whole", &LoadAttrs::whole, Presence::kOptional},
    Field{"halves", &LoadAttrs::halves, Presence::kOptional},
    Field{"gathers", &LoadAttrs::gathers, Presence::kOptional},
    Field{"component", &LoadAttrs::component, Presence::kOptional},
    Field{"piece", &LoadAttrs::piece, Presence::kOptional}};
template <> inline constexpr auto kFields<FindRowsAttrs> = std::tuple{
    Field{"rows", &FindRowsAttrs::rows},
    Field{"at_once", &FindRowsAttrs::at_once, Presence::kOptional}};
template <> inline constexpr auto kFields<RowLoadAttrs> = std::tuple{
    Field{"tile", &RowLoadAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"rows", &RowLoadAttrs::rows},
    Field{"at_once", &RowLoadAttrs::at_once, Presence::kOptional},
    Field{"to", &RowLoadAttrs::to, Presence::kOptional}};
template <> inline constexpr auto kFields<PixelLoadAttrs> = std::tuple{
    Field{"tile", &PixelLoadAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"map", &PixelLoadAttrs::map},
    Field{"column", &PixelLoadAttrs::column, Presence::kOptional},
    Field{"row", &PixelLoadAttrs::row, Presence::kOptional},
    Field{"to", &PixelLoadAttrs::to, Presence::kOptional},
    Field{"block", &PixelLoadAttrs::block, Presence::kOptional}};
template <> inline constexpr auto kFields<GatherAttrs> = std::tuple{
    Field{"tile", &GatherAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"vector", &GatherAttrs::vector},
    Field{"channels", &GatherAttrs::channels, Presence::kOptional},
    Field{"columns", &GatherAttrs::columns, Presence::kOptional},
    Field{"rows", &GatherAttrs::rows, Presence::kOptional},
    Field{"planes", &GatherAttrs::planes, Presence::kOptional},
    Field{"first", &GatherAttrs::first, Presence::kOptional}};
template <> inline constexpr auto kFields<PackAttrs> = std::tuple{
    Field{"operand", &PackAttrs::operand},
    Field{"outer", &PackAttrs::outer},
    Field{"inner", &PackAttrs::inner}};
template <> inline constexpr auto kFields<PackFilterAttrs> = std::tuple{
    Field{"planes", &PackFilterAttrs::planes, Presence::kOptional},
    Field{"dense", &PackFilterAttrs::dense, Presence::kOptional},
    Field{"transposed", &PackFilterAttrs::transposed, Presence::kOptional},
    Field{"merged", &PackFilterAttrs::merged, Presence::kOptional}};
template <> inline constexpr auto kFields<PackIm2colAttrs> = std::tuple{
    Field{"planes", &PackIm2colAttrs::planes, Presence::kOptional}};
template <> inline constexpr auto kFields<PackWindowsAttrs> = std::tuple{
    Field{"planes", &PackWindowsAttrs::planes, Presence::kOptional},
    Field{"rows", &PackWindowsAttrs::rows},
    Field{"channels", &PackWindowsAttrs::channels}};
template <> inline constexpr auto kFields<PackFactorsAttrs> = std::tuple{
    Field{"operand", &PackFactorsAttrs::operand},
    Field{"run", &PackFactorsAttrs::run},
    Field{"blocks", &PackFactorsAttrs::blocks, Presence::kOptional},
    Field{"halves", &PackFactorsAttrs::halves, Presence::kOptional}};
template <> inline constexpr auto kFields<BlockRowsAttrs> = std::tuple{
    Field{"numbers", &BlockRowsAttrs::numbers},
    Field{"scaling", &BlockRowsAttrs::scaling},
    Field{"type", &BlockRowsAttrs::type}};
template <> inline constexpr auto kFields<MmaAttrs> = std::tuple{
    Field{"a", &MmaAttrs::a_tile, Presence::kAlways, Meaning::kTileA},
    Field{"b", &MmaAttrs::b_tile, Presence::kAlways, Meaning::kTile},
    Field{"row", &MmaAttrs::a_row, Presence::kOptional},
    Field{"accumulator", &MmaAttrs::accumulator, Presence::kOptional},
    Field{"block", &MmaAttrs::block, Presence::kOptional}};
template <> inline constexpr auto kFields<MmaScaledAttrs> = std::tuple{
    Field{"a", &MmaScaledAttrs::a_tile, Presence::kAlways, Meaning::kTileA},
    Field{"b", &MmaScaledAttrs::b_tile, Presence::kAlways, Meaning::kTile},
    Field{"run", &MmaScaledAttrs::run, Presence::kAlways}, Field{"b_scales", &MmaScaledAttrs::b_scales},
    Field{"metadata", &MmaScaledAttrs::metadata, Presence::kOptional},
    Field{"part", &MmaScaledAttrs::part, Presence::kOptional},
    Field{"parts", &MmaScaledAttrs::parts, Presence::kOptional}};
template <> inline constexpr auto kFields<MmaSparseAttrs> = std::tuple{
    Field{"a", &MmaSparseAttrs::a_tile, Presence::kAlways, Meaning::kTileA},
    Field{"b", &MmaSparseAttrs::b_tile, Presence::kAlways, Meaning::kTile}};
template <> inline constexpr auto kFields<ReadMetadataAttrs> = std::tuple{
    Field{"tile", &ReadMetadataAttrs::tile, Presence::kAlways, Meaning::kTile}};
template <> inline constexpr auto kFields<BlockCopyAttrs> = std::tuple{
    Field{"tile", &BlockCopyAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"column", &BlockCopyAttrs::column, Presence::kOptional},
    Field{"step", &BlockCopyAttrs::step},
    Field{"lines", &BlockCopyAttrs::lines, Presence::kOptional},
    Field{"part", &BlockCopyAttrs::part, Presence::kOptional},
    Field{"parts", &BlockCopyAttrs::parts, Presence::kOptional}};
template <> inline constexpr auto kFields<MmaTensorAttrs> = std::tuple{
    Field{"b", &MmaTensorAttrs::b_tile, Presence::kAlways, Meaning::kTile},
    Field{"idle", &MmaTensorAttrs::idle, Presence::kOptional},
    Field{"shift", &MmaTensorAttrs::shift, Presence::kOptional},
    Field{"stale", &MmaTensorAttrs::stale, Presence::kOptional}};
template <> inline constexpr auto kFields<RowBorderMaskAttrs> = std::tuple{
    Field{"columns", &RowBorderMaskAttrs::columns}};
template <> inline constexpr auto kFields<TensorCopyAttrs> = std::tuple{
    Field{"tile", &TensorCopyAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"row", &TensorCopyAttrs::row, Presence::kOptional}};
template <> inline constexpr auto kFields<TensorShiftAttrs> = std::tuple{
    Field{"issues", &TensorShiftAttrs::issues, Presence::kOptional}};
template <> inline constexpr auto kFields<TensorRefreshAttrs> = std::tuple{
    Field{"tile", &TensorRefreshAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"row", &TensorRefreshAttrs::row}};
template <> inline constexpr auto kFields<DepthwiseAttrs> = std::tuple{
    Field{"tile", &DepthwiseAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"fragment", &DepthwiseAttrs::fragment},
    Field{"columns", &DepthwiseAttrs::columns},
    Field{"stride", &DepthwiseAttrs::stride},
    Field{"dilation", &DepthwiseAttrs::dilation},
    Field{"line", &DepthwiseAttrs::line},
    Field{"lines", &DepthwiseAttrs::lines},
    Field{"planes", &DepthwiseAttrs::planes, Presence::kOptional},
    Field{"reversed", &DepthwiseAttrs::reversed, Presence::kOptional},
    Field{"divides", &DepthwiseAttrs::divides, Presence::kOptional},
    Field{"phase", &DepthwiseAttrs::phase, Presence::kOptional}};
template <> inline constexpr auto kFields<DepthwiseGradientAttrs> = std::tuple{
    Field{"run", &DepthwiseGradientAttrs::run},
    Field{"columns", &DepthwiseGradientAttrs::columns},
    Field{"stride", &DepthwiseGradientAttrs::stride},
    Field{"dilation", &DepthwiseGradientAttrs::dilation},
    Field{"outputs", &DepthwiseGradientAttrs::outputs},
    Field{"line", &DepthwiseGradientAttrs::line},
    Field{"lines", &DepthwiseGradientAttrs::lines},
    Field{"rows", &DepthwiseGradientAttrs::rows},
    Field{"groups", &DepthwiseGradientAttrs::groups},
    Field{"planes", &DepthwiseGradientAttrs::planes, Presence::kOptional},
    Field{"whole", &DepthwiseGradientAttrs::whole, Presence::kOptional}};
template <> inline constexpr auto kFields<GemvAttrs> = std::tuple{
    Field{"tile", &GemvAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"type", &GemvAttrs::type},
    Field{"vectors", &GemvAttrs::vectors},
    Field{"lines", &GemvAttrs::lines},
    Field{"copies", &GemvAttrs::copies},
    Field{"stages", &GemvAttrs::stages},
    Field{"scale_run", &GemvAttrs::scale_run, Presence::kOptional},
    Field{"halves", &GemvAttrs::halves, Presence::kOptional},
    Field{"waits", &GemvAttrs::waits, Presence::kOptional}};
template <> inline constexpr auto kFields<LoadSumsAttrs> = std::tuple{
    Field{"tile", &LoadSumsAttrs::tile, Presence::kAlways, Meaning::kTile},
    Field{"copies", &LoadSumsAttrs::copies}};
template <> inline constexpr auto kFields<AccReadAttrs> = std::tuple{
    Field{"columns", &AccReadAttrs::columns},
    Field{"fragment", &AccReadAttrs::fragment}};
template <> inline constexpr auto kFields<AccRegistersAttrs> = std::tuple{
    Field{"column", &AccRegistersAttrs::column},
    Field{"columns", &AccRegistersAttrs::columns},
    Field{"accumulator", &AccRegistersAttrs::accumulator, Presence::kOptional}};
template <> inline constexpr auto kFields<ScaleAttrs> = std::tuple{
    Field{"by", &ScaleAttrs::binding}};
template <> inline constexpr auto kFields<ScaleFactorsAttrs> = std::tuple{
    Field{"fragment", &ScaleFactorsAttrs::fragment},
    Field{"runs", &ScaleFactorsAttrs::runs},
    Field{"set", &ScaleFactorsAttrs::set},
    Field{"rows", &ScaleFactorsAttrs::rows},
    Field{"packed", &ScaleFactorsAttrs::packed, Presence::kOptional}};
template <> inline constexpr auto kFields<ReadScaleFactorsAttrs> = std::tuple{
    Field{"set", &ReadScaleFactorsAttrs::set},
    Field{"packed", &ReadScaleFactorsAttrs::packed, Presence::kOptional}};
template <> inline constexpr auto kFields<SlotScaleFactorsAttrs> = std::tuple{
    Field{"a_tile", &SlotScaleFactorsAttrs::a_tile},
    Field{"b_tile", &SlotScaleFactorsAttrs::b_tile},
    Field{"fragment", &SlotScaleFactorsAttrs::fragment},
    Field{"column", &SlotScaleFactorsAttrs::column, Presence::kOptional},
    Field{"columns", &SlotScaleFactorsAttrs::columns, Presence::kOptional},
    Field{"aligned", &SlotScaleFactorsAttrs::aligned, Presence::kOptional},
    Field{"packed", &SlotScaleFactorsAttrs::packed, Presence::kOptional},
    Field{"after_mmas", &SlotScaleFactorsAttrs::after_mmas, Presence::kOptional},
    Field{"b_vector", &SlotScaleFactorsAttrs::b_vector, Presence::kOptional}};
template <> inline constexpr auto kFields<ClearPromotedAttrs> = std::tuple{
    Field{"fragment", &ClearPromotedAttrs::fragment}};
template <> inline constexpr auto kFields<AddPromotedAttrs> = std::tuple{
    Field{"column", &AddPromotedAttrs::column}};
template <> inline constexpr auto kFields<ReadPromotedAttrs> = std::tuple{
    Field{"column", &ReadPromotedAttrs::column},
    Field{"columns", &ReadPromotedAttrs::columns},
    Field{"fragment", &ReadPromotedAttrs::fragment}};
template <> inline constexpr auto kFields<CombineVectorAttrs> = std::tuple{
    Field{"base", &CombineVectorAttrs::base},
    Field{"how", &CombineVectorAttrs::how},
    Field{"axis", &CombineVectorAttrs::axis},
    Field{"type", &CombineVectorAttrs::type},
    Field{"rows", &CombineVectorAttrs::rows, Presence::kOptional},
    Field{"blocks", &CombineVectorAttrs::blocks, Presence::kOptional},
    Field{"gated", &CombineVectorAttrs::gated, Presence::kOptional},
    Field{"halves", &CombineVectorAttrs::halves, Presence::kOptional},
    Field{"factors", &CombineVectorAttrs::factors, Presence::kOptional}};
template <> inline constexpr auto kFields<CombineMatrixAttrs> = std::tuple{
    Field{"base", &CombineMatrixAttrs::base},
    Field{"how", &CombineMatrixAttrs::how},
    Field{"operand", &CombineMatrixAttrs::operand},
    Field{"type", &CombineMatrixAttrs::type},
    Field{"vector", &CombineMatrixAttrs::vector},
    Field{"rows", &CombineMatrixAttrs::rows, Presence::kOptional},
    Field{"beta", &CombineMatrixAttrs::beta, Presence::kOptional},
    Field{"derivative", &CombineMatrixAttrs::derivative, Presence::kOptional},
    Field{"number", &CombineMatrixAttrs::number, Presence::kOptional}};
template <> inline constexpr auto kFields<PrefetchMatrixAttrs> = std::tuple{
    Field{"base", &PrefetchMatrixAttrs::base},
    Field{"operand", &PrefetchMatrixAttrs::operand},
    Field{"type", &PrefetchMatrixAttrs::type},
    Field{"rows", &PrefetchMatrixAttrs::rows, Presence::kOptional},
    Field{"tile_rows", &PrefetchMatrixAttrs::tile_rows},
    Field{"tile_columns", &PrefetchMatrixAttrs::tile_columns}};
template <> inline constexpr auto kFields<CallAttrs> = std::tuple{
    Field{"function", &CallAttrs::function, Presence::kAlways, Meaning::kFunction},
    Field{"operand", &CallAttrs::operand, Presence::kOptional},
    Field{"number", &CallAttrs::number, Presence::kOptional},
    Field{"vector", &CallAttrs::vector},
    Field{"rows", &CallAttrs::rows, Presence::kOptional},
    Field{"gated", &CallAttrs::gated, Presence::kOptional},
    Field{"halves", &CallAttrs::halves, Presence::kOptional}};
template <> inline constexpr auto kFields<MapAttrs> = std::tuple{
    Field{"function", &MapAttrs::function},
    Field{"number", &MapAttrs::number, Presence::kOptional},
    Field{"approximate", &MapAttrs::approximate, Presence::kOptional}};
template <> inline constexpr auto kFields<GateAttrs> = std::tuple{
    Field{"function", &GateAttrs::function},
    Field{"approximate", &GateAttrs::approximate, Presence::kOptional}};
template <> inline constexpr auto kFields<ReduceAttrs> = std::tuple{
    Field{"base", &ReduceAttrs::base},
    Field{"how", &ReduceAttrs::how},
    Field{"axis", &ReduceAttrs::axis},
    Field{"rows", &ReduceAttrs::rows, Presence::kOptional},
    Field{"gated", &ReduceAttrs::gated, Presence::kOptional},
    Field{"halves", &ReduceAttrs::halves, Presence::kOptional}};
template <> inline constexpr auto kFields<StorePartialRowAttrs> = std::tuple{
    Field{"base", &StorePartialRowAttrs::base},
    Field{"axis", &StorePartialRowAttrs::axis},
    Field{"rows", &StorePartialRowAttrs::rows, Presence::kOptional},
    Field{"gated", &StorePartialRowAttrs::gated, Presence::kOptional},
    Field{"halves", &StorePartialRowAttrs::halves, Presence::kOptional},
    Field{"unit", &StorePartialRowAttrs::unit},
    Field{"rows_per_unit", &StorePartialRowAttrs::rows_per_unit}};
template <> inline constexpr auto kFields<ReducePartialRowsAttrs> = std::tuple{
    Field{"reduction", &ReducePartialRowsAttrs::reduction},
    Field{"fold", &ReducePartialRowsAttrs::fold, Presence::kOptional}};
template <> inline constexpr auto kFields<QuantizeAttrs> = std::tuple{
    Field{"scaling", &QuantizeAttrs::scaling},
    Field{"type", &QuantizeAttrs::type}};
template <> inline constexpr auto kFields<GlobalAttrs> = std::tuple{
    Field{"operand", &GlobalAttrs::operand},
    Field{"base", &GlobalAttrs::base, Presence::kOptional},
    Field{"type", &GlobalAttrs::type},
    Field{"vector", &GlobalAttrs::vector},
    Field{"rows", &GlobalAttrs::rows, Presence::kOptional}};
template <> inline constexpr auto kFields<ArriveAttrs> = std::tuple{
    Field{"sharers", &ArriveAttrs::sharers, Presence::kOptional}};
template <> inline constexpr auto kFields<StageAttrs> = std::tuple{
    Field{"buffer", &StageAttrs::buffer, Presence::kAlways, Meaning::kBuffer},
    Field{"column", &StageAttrs::column, Presence::kOptional}};
template <> inline constexpr auto kFields<BulkStoreAttrs> = std::tuple{
    Field{"buffer", &BulkStoreAttrs::buffer, Presence::kAlways, Meaning::kBuffer},
    Field{"map", &BulkStoreAttrs::map, Presence::kOptional},
    Field{"rows", &BulkStoreAttrs::rows, Presence::kOptional}};
template <> inline constexpr auto kFields<BulkWaitAttrs> = std::tuple{
    Field{"pending", &BulkWaitAttrs::pending},
    Field{"buffer", &BulkWaitAttrs::buffer, Presence::kAlways, Meaning::kBuffer}};
template <> inline constexpr auto kFields<StoreRowsAttrs> = std::tuple{
    Field{"buffer", &StoreRowsAttrs::buffer, Presence::kAlways, Meaning::kBuffer},
    Field{"rows", &StoreRowsAttrs::rows, Presence::kOptional},
    Field{"words", &StoreRowsAttrs::words, Presence::kOptional}};
template <> inline constexpr auto kFields<WarpRowAttrs> = std::tuple{
    Field{"rows", &WarpRowAttrs::rows}};

// Declarations. Their bodies (tiles, ops) are not fields.
template <> inline constexpr auto kFields<Program> = std::tuple{
    Field{"name", &Program::name, Presence::kBare},
    Field{"target", &Program::target},
    Field{"stage", &Program::stage},
    Field{"threads", &Program::threads},
    JoinedField{"tile", 'x', std::array{&Program::tile_m, &Program::tile_n, &Program::tile_k}},
    Field{"rows", &Program::row_axis, Presence::kOptional},
    JoinedField{"cluster", 'x', std::array{&Program::cluster_m, &Program::cluster_n}, Presence::kOptional},
    Field{"cluster_k", &Program::cluster_k, Presence::kOptional},
    Field{"ctas", &Program::ctas, Presence::kOptional},
    Field{"live_rows", &Program::live_rows, Presence::kOptional},
    Field{"diagonal_blocks", &Program::diagonal_blocks, Presence::kOptional},
    Field{"box_lines", &Program::box_lines, Presence::kOptional},
    Field{"box_columns", &Program::box_columns, Presence::kOptional},
    JoinedField{"windows", 'x', std::array{&Program::window_lines, &Program::window_spans}, Presence::kOptional},
    JoinedField{"window", 'x', std::array{&Program::window_rows, &Program::window_channels}, Presence::kOptional},
    JoinedField{"patch", 'x', std::array{&Program::patch_d, &Program::patch_h, &Program::patch_w}, Presence::kOptional},
    Field{"operands", &Program::operand_type},
    Field{"operand_bits", &Program::operand_bits, Presence::kOptional},
    Field{"sparse", &Program::sparse_a, Presence::kOptional},
    Field{"saturates", &Program::saturates, Presence::kOptional},
    Field{"smem_bytes", &Program::smem_bytes, Presence::kOptional},
    Field{"tmem_slot", &Program::tmem_slot_offset, Presence::kOptional, Meaning::kOffset},
    Field{"tmem_columns", &Program::tmem_columns, Presence::kOptional}};
template <> inline constexpr auto kFields<Param> = std::tuple{
    Field{"binding", &Param::binding, Presence::kBare},
    Field{"box", &Param::box, Presence::kOptional}};
template <> inline constexpr auto kFields<Channel> = std::tuple{
    Field{"name", &Channel::name, Presence::kBare},
    Field{"space", &Channel::space, Presence::kBare},
    Field{"stages", &Channel::stages},
    Field{"rows", &Channel::rows, Presence::kOptional},
    Field{"columns", &Channel::columns, Presence::kOptional},
    Field{"overlap", &Channel::overlap, Presence::kOptional},
    Field{"of_overlap", &Channel::is_overlap, Presence::kOptional},
    Field{"private", &Channel::is_private, Presence::kOptional},
    Field{"resident", &Channel::resident, Presence::kOptional},
    Field{"own", &Channel::own, Presence::kOptional},
    Field{"stored", &Channel::stored, Presence::kOptional},
    Field{"column", &Channel::tmem_column, Presence::kOptional},
    Field{"slots", &Channel::slots_offset, Presence::kOptional, Meaning::kOffset},
    JoinedField{"arrivals", '/', std::array{&Channel::full_arrivals, &Channel::empty_arrivals}, Presence::kOptional},
    Field{"barriers", &Channel::barrier_offset, Presence::kOptional, Meaning::kOffset}};
template <> inline constexpr auto kFields<TileSlot> = std::tuple{
    Field{"name", &TileSlot::name, Presence::kBare},
    Field{"layout", &TileSlot::layout, Presence::kBare},
    Field{"@", &TileSlot::offset, Presence::kOptional, Meaning::kOffset}};
template <> inline constexpr auto kFields<Buffer> = std::tuple{
    Field{"name", &Buffer::name, Presence::kBare},
    Field{"layout", &Buffer::layout, Presence::kBare},
    Field{"copies", &Buffer::copies},
    Field{"warps", &Buffer::warps},
    Field{"sharers", &Buffer::sharers, Presence::kOptional},
    Field{"@", &Buffer::offset, Presence::kOptional, Meaning::kOffset}};
template <> inline constexpr auto kFields<FunctionInput> = std::tuple{
    Field{"kind", &FunctionInput::kind, Presence::kBare},
    Field{"type", &FunctionInput::type, Presence::kOptional},
    Field{"count", &FunctionInput::count, Presence::kOptional}};
template <> inline constexpr auto kFields<ProgramFunction> = std::tuple{
    Field{"name", &ProgramFunction::name, Presence::kBare},
    Field{"digest", &ProgramFunction::digest, Presence::kAlways, Meaning::kText},
    Field{"is_gated", &ProgramFunction::is_gated, Presence::kOptional}};
template <> inline constexpr auto kFields<Role> = std::tuple{
    Field{"name", &Role::name, Presence::kBare},
    Field{"kind", &Role::kind},
    JoinedField{"warps", '+', std::array{&Role::first_warp, &Role::warps}},
    Field{"elected", &Role::elected, Presence::kOptional},
    Field{"leader", &Role::leader, Presence::kOptional},
    Field{"registers", &Role::registers, Presence::kOptional},
    Field{"early", &Role::early, Presence::kOptional}};
// clang-format on

// Calls f(field) for each field of a struct, in printed order.
template <typename Struct, typename F>
constexpr void ForEachField(F&& f) {
  std::apply([&](const auto&... fields) { (f(fields), ...); }, kFields<Struct>);
}

// Ids at and above this are refused: a program has thousands of values at most.
constexpr ValueId kValueLimit = 1u << 20;

// Converts to anything: `A{AnyMember{}, …}` compiles up to the number of members of the aggregate A.
struct AnyMember {
  template <typename T>
  operator T() const;
};
template <typename A, size_t... kIndices>
constexpr bool TakesMembers(std::index_sequence<kIndices...>) {
  return requires { A{(static_cast<void>(kIndices), AnyMember{})...}; };
}
template <typename A, size_t kCount = 0>
constexpr size_t MemberCount() {
  if constexpr (TakesMembers<A>(std::make_index_sequence<kCount + 1>{})) {
    return MemberCount<A, kCount + 1>();
  } else {
    return kCount;
  }
}
template <typename... Alternatives>
constexpr bool EveryMemberHasAField(const std::variant<Alternatives...>*) {
  return (
      (MemberCount<Alternatives>() == std::tuple_size_v<std::remove_cvref_t<decltype(kFields<Alternatives>)>>)&&...);
}
static_assert(EveryMemberHasAField(static_cast<const Attrs*>(nullptr)));

// The attributes of an op of this kind, each at its default.
Attrs DefaultAttrs(OpKind kind);

// The channel that an op names, or -1.
int ChannelOf(const Op& op);

// The channel of the slot that a value is, or -1, per ValueId. Filled op by op, so that a parser can use it.
class SlotChannels {
 public:
  void Add(const Op& op);
  int Of(ValueId value) const { return value < channel_.size() ? channel_[value] : -1; }
  // The channel of the `from_last`-th slot among the operands, counted from the last one, or -1.
  int OfSlot(const Op& op, int from_last) const;

 private:
  std::vector<int> channel_;
};

// The table of ops of docs/ir.md, in Markdown.
std::string OpTable();

}  // namespace laneshift::ir
