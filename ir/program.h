// TileProgram: a kernel as roles that exchange tiles through channels. Structured, small, printable and parsable.
//
// Semantics. A CTA runs every role at once, each on its own warps; a role's body is executed by all its warps, or by
// one elected thread where the role says so. Roles share nothing but channels. A channel is a ring of `stages` slots,
// each holding one tile of every entry: `put` hands the producer a free slot, `send` makes it full when everything
// issued into it has completed, `take` hands the consumer the oldest full slot, `release` frees it when everything that
// was issued on it has completed. Loads and MMAs are asynchronous; only send/take and release/put order them. Every
// producer role sends each slot, every consumer role takes and releases each slot, in ring order. Index arithmetic is
// 32-bit and never overflows. Reads outside a tensor give zero, writes outside are dropped. Sums are f32,
// but for those of 8-bit operands in an accumulator of a target that keeps fewer bits (target::Target): f32 registers
// beside the accumulator, `sums`, then add up what it holds of each block of K. A conversion to an 8-bit type
// saturates.
//
// Convolution. The rows of A and D are positions of a walk over the images: `walk_q` positions a row, of which the
// first `out_q` are output pixels, out_p rows, out_o planes, then the next image. Positions behind out_q give sums that
// are dropped; they let a tap be a distance in rows. A tile program of two spatial dimensions has no planes.
//
// Clusters. `cluster_m` x `cluster_n` CTAs run together; a cluster's output tiles are neighbours, and every CTA goes
// through as many turns as its peers, though its tile may lie outside. The CTA of index (i, j) has rank i + cluster_m *
// j. A bulk copy may bring a part of a tile to all CTAs of the cluster along m or n; the other parts come from them.
// With `ctas` 2, CTAs of ranks 2p and 2p + 1 are a pair. The even one, its leader, alone runs the roles that say so;
// its MMAs take the rows of A of both CTAs, take half of the columns of B from each, and leave to each CTA its own
// rows. // The full barriers of shared channels are then those of the leader.
//
// Turns. Two roles that multiply may take turns at the output tiles of a CTA: each goes through every second one,
// passes the slots of the other's tiles, and issues products only while it holds a slot of a channel of turns, which
// carries nothing. Such a slot is sent and released when the products are issued, not when they have completed.
//
// Blocks. The accumulator of a role that multiplies into registers consists of blocks of 16 rows for each of its warps.
// Where there are several, the rows of the next block lie behind those of all warps of the one before, and its columns
// behind those: in AccRegisters and the sums, column c of block b is column b * Columns() + c.
//
// A role may have two accumulators of that size: the products of one may run while the other is read.
//
// Output tiles. A cluster walks over every so-manieth, or, where `tiles` is granted, begins with that of its own index
// and goes on with those of clusters that it takes over before they start: an answer in a slot of the one channel of
// grants names such a cluster, or none. Every role takes every answer, and all CTAs of the cluster get the same ones.
//
// Stages: kScheduled as built; LowerChannels turns put/send/take/release into barrier operations: kLowered.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/epilogue.h"
#include "ir/layout.h"
#include "laneshift/epilogue_function.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::ir {

// What the runtime passes to a kernel parameter.
// BINDING(Name, text, kind)
#define LS_BINDINGS(BINDING)                    \
  BINDING(MapA, "map_a", kTensorMap)            \
  BINDING(MapEdge, "map_edge", kTensorMap)      \
  BINDING(MapB, "map_b", kTensorMap)            \
  BINDING(MapD, "map_d", kTensorMap)            \
  BINDING(MapDRest, "map_d_rest", kTensorMap)   \
  BINDING(BaseA, "base_a", kPointer)            \
  BINDING(BaseB, "base_b", kPointer)            \
  BINDING(BaseC, "base_c", kPointer)            \
  BINDING(BaseD, "base_d", kPointer)            \
  BINDING(BaseBias, "base_bias", kPointer)      \
  BINDING(BaseScaleA, "base_scale_a", kPointer) \
  BINDING(BaseScaleB, "base_scale_b", kPointer) \
  BINDING(BaseScaleD, "base_scale_d", kPointer) \
  BINDING(Workspace, "workspace", kPointer)     \
  BINDING(PitchA, "pitch_a", kInt64)            \
  BINDING(PitchB, "pitch_b", kInt64)            \
  BINDING(PitchC, "pitch_c", kInt64)            \
  BINDING(PitchD, "pitch_d", kInt64)            \
  BINDING(StrideA, "stride_a", kInt64)          \
  BINDING(StrideB, "stride_b", kInt64)          \
  BINDING(StrideC, "stride_c", kInt64)          \
  BINDING(StrideD, "stride_d", kInt64)          \
  BINDING(RowA, "row_a", kInt64)                \
  BINDING(RowB, "row_b", kInt64)                \
  BINDING(RowC, "row_c", kInt64)                \
  BINDING(RowD, "row_d", kInt64)                \
  BINDING(PlaneA, "plane_a", kInt64)            \
  BINDING(PlaneB, "plane_b", kInt64)            \
  BINDING(PlaneC, "plane_c", kInt64)            \
  BINDING(PlaneD, "plane_d", kInt64)            \
  BINDING(M, "m", kInt32)                       \
  BINDING(N, "n", kInt32)                       \
  BINDING(K, "k", kInt32)                       \
  BINDING(Batch, "batch", kInt32)               \
  BINDING(Columns, "columns", kInt32)           \
  BINDING(Channels, "channels", kInt32)         \
  BINDING(Filters, "filters", kInt32)           \
  BINDING(WalkQ, "walk_q", kInt32)              \
  BINDING(OutQ, "out_q", kInt32)                \
  BINDING(OutP, "out_p", kInt32)                \
  BINDING(OutO, "out_o", kInt32)                \
  BINDING(InW, "in_w", kInt32)                  \
  BINDING(InH, "in_h", kInt32)                  \
  BINDING(InD, "in_d", kInt32)                  \
  BINDING(TapsS, "taps_s", kInt32)              \
  BINDING(TapsR, "taps_r", kInt32)              \
  BINDING(TapsT, "taps_t", kInt32)              \
  BINDING(StepW, "step_w", kInt32)              \
  BINDING(StepH, "step_h", kInt32)              \
  BINDING(StepD, "step_d", kInt32)              \
  BINDING(PadW, "pad_w", kInt32)                \
  BINDING(PadH, "pad_h", kInt32)                \
  BINDING(PadD, "pad_d", kInt32)                \
  BINDING(SpreadW, "spread_w", kInt32)          \
  BINDING(SpreadH, "spread_h", kInt32)          \
  BINDING(SpreadD, "spread_d", kInt32)          \
  BINDING(Alpha, "alpha", kFloat)               \
  BINDING(Beta, "beta", kFloat)                 \
  BINDING(BaseE0, "base_e0", kPointer)          \
  BINDING(BaseE1, "base_e1", kPointer)          \
  BINDING(BaseE2, "base_e2", kPointer)          \
  BINDING(BaseE3, "base_e3", kPointer)          \
  BINDING(BaseE4, "base_e4", kPointer)          \
  BINDING(BaseE5, "base_e5", kPointer)          \
  BINDING(BaseE6, "base_e6", kPointer)          \
  BINDING(BaseE7, "base_e7", kPointer)          \
  BINDING(NumberE0, "number_e0", kFloat)        \
  BINDING(NumberE1, "number_e1", kFloat)        \
  BINDING(NumberE2, "number_e2", kFloat)        \
  BINDING(NumberE3, "number_e3", kFloat)        \
  BINDING(NumberE4, "number_e4", kFloat)        \
  BINDING(NumberE5, "number_e5", kFloat)        \
  BINDING(NumberE6, "number_e6", kFloat)        \
  BINDING(NumberE7, "number_e7", kFloat)        \
  BINDING(BaseT0, "base_t0", kPointer)          \
  BINDING(BaseT1, "base_t1", kPointer)          \
  BINDING(BaseT2, "base_t2", kPointer)          \
  BINDING(BaseT3, "base_t3", kPointer)          \
  BINDING(BaseT4, "base_t4", kPointer)          \
  BINDING(BaseT5, "base_t5", kPointer)          \
  BINDING(BaseT6, "base_t6", kPointer)          \
  BINDING(BaseT7, "base_t7", kPointer)          \
  BINDING(LengthT0, "length_t0", kInt32)        \
  BINDING(LengthT1, "length_t1", kInt32)        \
  BINDING(LengthT2, "length_t2", kInt32)        \
  BINDING(LengthT3, "length_t3", kInt32)        \
  BINDING(LengthT4, "length_t4", kInt32)        \
  BINDING(LengthT5, "length_t5", kInt32)        \
  BINDING(LengthT6, "length_t6", kInt32)        \
  BINDING(LengthT7, "length_t7", kInt32)        \
  BINDING(LinesT0, "lines_t0", kInt32)          \
  BINDING(LinesT1, "lines_t1", kInt32)          \
  BINDING(LinesT2, "lines_t2", kInt32)          \
  BINDING(LinesT3, "lines_t3", kInt32)          \
  BINDING(LinesT4, "lines_t4", kInt32)          \
  BINDING(LinesT5, "lines_t5", kInt32)          \
  BINDING(LinesT6, "lines_t6", kInt32)          \
  BINDING(LinesT7, "lines_t7", kInt32)

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

constexpr int kBarrierBytes = 8;                                // of one mbarrier
constexpr int kGrantBytes = 16;                                 // of an answer of cluster launch control
constexpr int kTensorLanes = 128;                               // of Tensor Memory
constexpr int kPartitionLanes = 32;                             // of them a shift moves rows among
constexpr int kRegisterAccumulators = 2;                        // that a role may have
constexpr int kRefreshedRows = kTensorLanes / kPartitionLanes;  // lanes that a shift leaves behind: the last of each 32

using ValueId = uint32_t;
constexpr ValueId kNoValue = ~ValueId{0};
enum class ValueType : uint8_t { kNone, kIndex, kPredicate, kSlot, kFragment, kLanes, kFactors };

enum class Side : uint8_t { kFull, kEmpty };    // the two barriers of a slot
enum class Edge : uint8_t { kBefore, kAfter };  // of a thread synchronisation
enum class Unit : uint8_t { kThread, kWarp };   // who arrives: every thread, or one lane of each warp

// Where in its cluster a CTA's copy or arrival goes. What a pair does together it does for both of its CTAs.
enum class Reach : uint8_t {
  kOwn,  // the CTA itself, or the pair
  kM,
  kN,       // those in line with it along m, or along n
  kCross,   // both lines
  kLeader,  // the leader of its pair
  kAll,     // every CTA of the cluster
};

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
};
struct ConstAttrs {
  int value = 0;
  bool operator==(const ConstAttrs&) const = default;
};
struct ParamAttrs {
  Binding binding{};
  bool operator==(const ParamAttrs&) const = default;
};
struct TilesAttrs {
  int raster = 1;
  int granted = 0;          // 1: each turn ends with a tiles.next, which names the next one
  int turn = 0, turns = 1;  // of each so many tiles, which one: roles take turns
  bool operator==(const TilesAttrs&) const = default;
};
struct SharesAttrs {
  int raster = 1;
  int sections = 1;  // at most; a tile has no more than K blocks
  bool operator==(const SharesAttrs&) const = default;
};
struct ForAttrs {
  int step = 1;
  bool operator==(const ForAttrs&) const = default;
};
struct ChannelAttrs {
  int channel = 0;
  bool operator==(const ChannelAttrs&) const = default;
};
struct ReleaseAttrs {
  int lag = 1;
  bool operator==(const ReleaseAttrs&) const = default;
};
struct DrainAttrs {
  int channel = 0, lag = 0;
  bool operator==(const DrainAttrs&) const = default;
};
struct CursorAttrs {
  int channel = 0, trail = 0;  // trail 1: the second cursor: of lagging releases, or of grants requested
  bool operator==(const CursorAttrs&) const = default;
};
struct ClusterIndexAttrs {
  Axis axis = Axis::kM;
  bool operator==(const ClusterIndexAttrs&) const = default;
};
struct BarrierAttrs {
  Side side = Side::kFull;
  int inverted = 0;  // wait: 1 waits for the phase before, which a fresh barrier passes
  Unit by = Unit::kThread;
  Reach to = Reach::kOwn;  // whose barriers of the slot an arrival goes to
  bool operator==(const BarrierAttrs&) const = default;
};
struct ExpectAttrs {
  int bytes = 0;
  int leader = 0;  // 1: only in the leader of a pair, for the bytes of both CTAs
  bool operator==(const ExpectAttrs&) const = default;
};
struct PendingAttrs {
  int pending = 0;
  bool operator==(const PendingAttrs&) const = default;
};
struct FenceAttrs {
  Edge edge = Edge::kBefore;
  bool operator==(const FenceAttrs&) const = default;
};
struct LoadAttrs {
  int tile = 0;  // entry of the slot's channel
  Operand operand = Operand::kA;
  int taps = 0;  // 1: inner counts the channels of all taps of a filter, and the taps lie anywhere (B, by threads)
  int transposed = 0;      // 1: elements are contiguous in memory along the tile's outer axis (by threads)
  Reach to = Reach::kOwn;  // kM, kN: the box is one of several; it comes to the same rows of the tile in all those CTAs
  int halves = 0;  // 1: along N the tile takes turns at two halves of B's columns (of a group), from the given one on
  bool operator==(const LoadAttrs&) const = default;
};
// A convolution's tile: `map` says which box; it is written from row `row` of the tile on.
struct PixelLoadAttrs {
  int tile = 0;
  Binding map = Binding::kMapA;
  int row = 0;
  Reach to = Reach::kOwn;
  bool operator==(const PixelLoadAttrs&) const = default;
};
struct GatherAttrs {
  int tile = 0;
  int vector = 1;  // elements of one access; runs of that many never cross a tap
  // Of small filters the kernel knows the extents, and the first (tap and channel) of the block.
  int channels = 0, columns = 0, rows = 0, planes = 0;  // 0: known at run time alone
  int first = 0;
  bool operator==(const GatherAttrs&) const = default;
};
// A matrix of `outer` rows of `inner` contiguous elements.
struct PackAttrs {
  Operand operand = Operand::kA;
  Axis outer = Axis::kM, inner = Axis::kK;
  bool operator==(const PackAttrs&) const = default;
};
inline constexpr int kPackedLine = 128;  // bytes, at which rows of a copy begin
struct MmaAttrs {
  int a_tile = 0, b_tile = 1;
  int a_row = 0;  // the row of the first tile that is row 0 of the product
  int sums = 0;   // into registers: which of the two accumulators that the role may have
  bool operator==(const MmaAttrs&) const = default;
};
struct MmaTensorAttrs {
  int b_tile = 0;
  int idle = 0;   // 1: no lane of the accumulator is written; orders what comes before with what comes behind
  int shift = 0;  // 1: moves the lanes of A as tensor.shift does, before or behind the product (a fact of the device)
  int lost = 0;   // the last so many of each 32 lanes of the accumulator are not written
  bool operator==(const MmaTensorAttrs&) const = default;
};
struct TensorCopyAttrs {
  int tile = 0;
  int row = 0;  // of the tile, that goes to lane 0
  bool operator==(const TensorCopyAttrs&) const = default;
};
struct TensorShiftAttrs {
  int issues = 1;  // instructions for each 8 columns: 1 moves every lane, or 4 move 32 lanes each
  bool operator==(const TensorShiftAttrs&) const = default;
};
struct TensorRefreshAttrs {
  int tile = 0;
  int row = 0;  // first of the tile's four rows
  bool operator==(const TensorRefreshAttrs&) const = default;
};
struct LanesBesideAttrs {
  int columns = 0;  // to the right; negative: to the left
  bool operator==(const LanesBesideAttrs&) const = default;
};
struct AccReadAttrs {
  int columns = 0;
  FragmentKind fragment = FragmentKind::kRowPerLane;
  bool operator==(const AccReadAttrs&) const = default;
};
struct AccRegistersAttrs {
  int column = 0, columns = 0;
  int sums = 0;  // which accumulator
  bool operator==(const AccRegistersAttrs&) const = default;
};
struct ScaleAttrs {
  Binding binding{};
  bool operator==(const ScaleAttrs&) const = default;
};
// Factors of rows of `fragment` and of runs of kScaleRun columns.
struct FactorsAttrs {
  FragmentKind fragment = FragmentKind::kRowPerLane;
  int runs = 1;
  bool operator==(const FactorsAttrs&) const = default;
};
struct ClearSumsAttrs {
  FragmentKind fragment = FragmentKind::kRowPerLane;
  bool operator==(const ClearSumsAttrs&) const = default;
};
struct AddSumsAttrs {
  int column = 0;
  bool operator==(const AddSumsAttrs&) const = default;
};
struct ReadSumsAttrs {
  int column = 0, columns = 0;
  FragmentKind fragment = FragmentKind::kRowPerLane;
  bool operator==(const ReadSumsAttrs&) const = default;
};
// How a row index addresses memory: rows `pitch` apart, or positions of a convolution's walk.
enum class RowMap : uint8_t { kMatrix, kPixels };

// What an operand of the epilogue does with an element.
enum class Combine : uint8_t { kAdd, kMultiply };

struct CombineVectorAttrs {
  Binding base = Binding::kBaseBias;
  Combine how = Combine::kAdd;
  BiasAxis axis = BiasAxis::kN;
  DataType type = DataType::kF32;
  RowMap rows = RowMap::kMatrix;  // pixels: each group of output channels has its own part of the vector
  int blocks = 0;                 // 1: a number for each kScaleRun rows and columns; the axis is none
  int gated = 0;                  // 1: of the columns that pairs were joined to
  int halves = 0;                 // 1: the vector lies as two halves, of which columns come in turns
  bool operator==(const CombineVectorAttrs&) const = default;
};
struct CombineMatrixAttrs {
  Binding base = Binding::kBaseC;
  Combine how = Combine::kAdd;
  Operand operand = Operand::kC;  // as which it lies
  DataType type = DataType::kF32;
  int vector = 1;  // as in GlobalAttrs
  RowMap rows = RowMap::kMatrix;
  int beta = 0;                               // 1: times beta first
  Function derivative = Function::kIdentity;  // which is taken at the element of the matrix, instead of the element
  int number = 0;                             // of the epilogue: the derivative's first, where it has any
  bool operator==(const CombineMatrixAttrs&) const = default;
};
// How a user's function is called: its operands and numbers are those of the epilogue from `operand` and `number` on.
struct CallAttrs {
  int function = 0;
  int operand = 0, number = 0;
  int vector = 1;  // as in GlobalAttrs, of elements of D
  RowMap rows = RowMap::kMatrix;
  int gated = 0;   // as in CombineVectorAttrs, of the vectors that the function takes; 1 where it joins pairs itself
  int halves = 0;  // as well
  bool operator==(const CallAttrs&) const = default;
};
struct MapAttrs {
  Function function = Function::kIdentity;
  int number = 0;       // of the epilogue: the function's first, where it has any
  int approximate = 0;  // 1: to the precision of 16-bit outputs
  bool operator==(const MapAttrs&) const = default;
};
// Columns 2 j and 2 j + 1 become one: function(first) * second.
struct GateAttrs {
  Function function = Function::kSilu;
  int approximate = 0;  // as in MapAttrs
  bool operator==(const GateAttrs&) const = default;
};
// What elements are reduced to; numbers in memory grow by it, or are the larger one.
enum class Reduction : uint8_t { kSum, kAmax };
struct ReduceAttrs {
  Binding base = Binding::kBaseE0;
  Reduction how = Reduction::kSum;
  BiasAxis axis = BiasAxis::kN;  // m: a number for each row, n: for each column, none: one
  RowMap rows = RowMap::kMatrix;
  int gated = 0;   // as in CombineVectorAttrs
  int halves = 0;  // as well
  bool operator==(const ReduceAttrs&) const = default;
};
// Sums of rows or columns that are stored to lines of the workspace. The lines of a matrix are counted along the other
// axis: `pieces` for each `unit` of it that D begins.
struct StoreTotalsAttrs {
  Binding base = Binding::kBaseE0;
  BiasAxis axis = BiasAxis::kN;  // as in ReduceAttrs, and what follows
  RowMap rows = RowMap::kMatrix;
  int gated = 0, halves = 0;
  int unit = 1, pieces = 1;

  ReduceAttrs Sums() const { return {base, Reduction::kSum, axis, rows, gated, halves}; }
  bool operator==(const StoreTotalsAttrs&) const = default;
};
// Which of the kernel's totals, and how many lines become one at once; 0: all become the caller's total.
struct AddTotalsAttrs {
  int total = 0;
  int section = 0;
  bool operator==(const AddTotalsAttrs&) const = default;
};
struct GlobalAttrs {
  Operand operand = Operand::kD;  // as which it lies
  Binding base = Binding::kBaseD;
  DataType type = DataType::kF32;
  int vector = 1;  // elements of one access; every run of that many columns is inside or outside as a whole
  RowMap rows = RowMap::kMatrix;
  bool operator==(const GlobalAttrs&) const = default;
};
struct ArriveAttrs {
  int sharers = 1;  // neighbouring warps that arrive together
  bool operator==(const ArriveAttrs&) const = default;
};
struct StageAttrs {
  int buffer = 0;
  int column = 0;  // of the copy, that the fragment begins at
  bool operator==(const StageAttrs&) const = default;
};
struct BulkStoreAttrs {
  int buffer = 0;
  Binding map = Binding::kMapD;  // its box is what leaves of a copy: all columns, or the first ones
  bool operator==(const BulkStoreAttrs&) const = default;
};
struct BulkWaitAttrs {
  int pending = 0;
  int buffer = 0;
  bool operator==(const BulkWaitAttrs&) const = default;
};
struct StoreRowsAttrs {
  int buffer = 0;
  RowMap rows = RowMap::kMatrix;
  int words = 0;  // 1: rows of D begin anywhere, and are stored by words; 0: they are whole, aligned 16-byte pieces
  bool operator==(const StoreRowsAttrs&) const = default;
};
struct WarpRowAttrs {
  int rows = 0;
  bool operator==(const WarpRowAttrs&) const = default;
};

using Attrs =
    std::variant<NoAttrs, ConstAttrs, ParamAttrs, ClusterIndexAttrs, TilesAttrs, SharesAttrs, ForAttrs, ChannelAttrs,
                 ReleaseAttrs, DrainAttrs, CursorAttrs, BarrierAttrs, ExpectAttrs, PendingAttrs, FenceAttrs, LoadAttrs,
                 PixelLoadAttrs, GatherAttrs, PackAttrs, MmaAttrs, MmaTensorAttrs, TensorCopyAttrs, TensorShiftAttrs,
                 TensorRefreshAttrs, LanesBesideAttrs, AccReadAttrs, AccRegistersAttrs, ScaleAttrs, CombineVectorAttrs,
                 CombineMatrixAttrs, MapAttrs, CallAttrs, GateAttrs, ReduceAttrs, StoreTotalsAttrs, AddTotalsAttrs,
                 FactorsAttrs, ClearSumsAttrs, AddSumsAttrs, ReadSumsAttrs, GlobalAttrs, ArriveAttrs, StageAttrs,
                 BulkStoreAttrs, BulkWaitAttrs, StoreRowsAttrs, WarpRowAttrs>;

enum class OpKind : uint8_t {
#define OP(Name, ...) k##Name,
#include "ir/ops.def"
};

enum class StageSet : uint8_t { kAny, kScheduled, kLowered };
enum class Stage : uint8_t { kScheduled, kLowered };

struct OpInfo {
  std::string_view name, mnemonic, operands;
  ValueType result;
  StageSet stages;
  int body;      // index arguments of the region, or -1
  size_t attrs;  // alternative of Attrs
  std::string_view summary;

  // Whether the row's operands end in a repeated one; the count of the others.
  bool Open() const { return operands.ends_with('*'); }
  size_t FixedOperands() const { return operands.size() - (Open() ? 2 : 0); }
  bool TakesOperands(size_t count) const { return Open() ? count >= FixedOperands() : count == FixedOperands(); }
};
const OpInfo& InfoOf(OpKind kind);
// The type that a letter of a row's operands stands for.
ValueType TypeOfLetter(char letter);
constexpr int kOpCount = 0
#define OP(...) +1
#include "ir/ops.def"
    ;

struct Op {
  OpKind kind{};
  std::vector<ValueId> operands{};
  ValueId result = kNoValue;  // or the first argument of the body; further arguments follow in order
  Attrs attrs{};
  std::vector<Op> body{};

  template <typename A>
  const A& As() const {
    return std::get<A>(attrs);
  }
  bool operator==(const Op&) const = default;
};

// An entry of a channel: a tile in shared memory, or an accumulator in Tensor Memory. A slot of grants is an answer,
// one of turns nothing.
struct TileSlot {
  std::string name{};
  SharedLayout layout{};  // of a shared channel
  int offset = -1;        // assigned: byte offset of stage 0 in shared memory
  bool operator==(const TileSlot&) const = default;
};

inline constexpr size_t kMostTilesOfSlot = 16;  // of a shared channel

enum class Space : uint8_t { kShared, kTensor, kGrants, kTurns };

struct Channel {
  std::string name{};
  Space space = Space::kShared;
  int stages = 1;
  std::vector<TileSlot> tiles{};              // of a shared channel
  int rows = 0, columns = 0;                  // of a Tensor Memory channel: 32-bit cells of an accumulator or operand
  int own = 0;                                // 1: a ring that one role alone reserves and retires
  int stays = 0;                              // 1: each slot is filled once and stays full
  int tmem_column = -1;                       // assigned: first column of stage 0
  int grant_offset = -1;                      // assigned, of grants: byte offset of stage 0 in shared memory
  int full_arrivals = 0, empty_arrivals = 0;  // set by LowerChannels
  int barrier_offset = -1;  // assigned: `stages` full barriers, then `stages` empty ones unless it stays, 8 bytes each

  int StageBytes() const;  // distance of two stages in shared memory
  int Barriers() const { return stays != 0 ? stages : 2 * stages; }
  bool operator==(const Channel&) const = default;
};

// Shared memory that the warps of a role use to turn fragments into rows for the TMA: each alone, or groups of
// `sharers` neighbours, whose fragments then lie side by side along the rows of one copy, the first warp's first.
struct Buffer {
  std::string name{};
  SharedLayout layout{};  // of one copy
  int copies = 1, warps = 0, sharers = 1;
  int offset = -1;  // assigned; copy c of group g of warps lies at offset + (g * copies + c) * layout.Bytes()

  int Groups() const { return warps / sharers; }
  int Bytes() const { return Groups() * copies * layout.Bytes(); }
  bool operator==(const Buffer&) const = default;
};

enum class RoleKind : uint8_t { kLoad, kCopy, kMma, kEpilogue, kMath, kSchedule };

struct Role {
  std::string name{};
  RoleKind kind{};
  int first_warp = 0, warps = 1;
  int elected = 0;    // 1: one thread of the (only) warp executes the body
  int leader = 0;     // 1: only in the leader of each pair of CTAs
  int registers = 0;  // registers of a thread after setmaxnreg; 0: as launched
  std::vector<Op> body{};
  bool operator==(const Role&) const = default;
};

// What a user's function takes behind the value.
struct FunctionInput {
  FunctionOperand kind = FunctionOperand::kNumber;
  DataType type = DataType::kF32;  // in memory
  int count = 0;                   // elements of a table

  bool operator==(const FunctionInput&) const = default;
};

// A user's function that the program calls.
struct ProgramFunction {
  std::string name;    // an identifier: names of C++ have their other characters replaced
  std::string digest;  // as in FunctionCall
  int joins_pairs = 0;  // 1: its value is that of two columns, as a gate's
  std::vector<FunctionInput> inputs{};

  bool operator==(const ProgramFunction&) const = default;
};

struct Program {
  std::string name = "gemm";
  std::string target;
  Stage stage = Stage::kScheduled;
  int threads = 0;
  int tile_m = 0, tile_n = 0, tile_k = 0;
  Axis row_axis = Axis::kM;  // M or N: what lies along the rows of matrix instructions and accumulators
  int cluster_m = 1, cluster_n = 1;
  int ctas = 1;       // that multiply together
  int kept_rows = 0;  // of a tile: where each warp's last lanes are lost, the rows that are left; 0: all
  DataType operand_type = DataType::kBf16;  // of A; tiles of 8-bit operands may be of two 8-bit types
  std::vector<Param> params;
  std::vector<Channel> channels;
  std::vector<Buffer> buffers;
  std::vector<ProgramFunction> functions;
  std::vector<Role> roles;
  std::vector<ValueType> values;  // type of each ValueId
  int smem_bytes = -1;            // assigned: dynamic shared memory of a CTA
  int tmem_slot_offset = -1;      // assigned: where tcgen05.alloc stores the address
  int tmem_columns = 0;           // assigned: allocated, a power of two of at least 32, or 0

  // Rows of D that a tile gives.
  int TileRows() const { return kept_rows == 0 ? tile_m : kept_rows; }
  const Param* FindParam(Binding binding) const;
  Axis ColumnAxis() const { return row_axis == Axis::kM ? Axis::kN : Axis::kM; }
  // Blocks of the accumulator of a role that multiplies into registers; of the others 1.
  int Blocks(const Role& role) const;
  // Of the accumulator of a tile.
  int Rows() const { return row_axis == Axis::kM ? tile_m : tile_n; }
  int Columns() const { return row_axis == Axis::kM ? tile_n : tile_m; }
  int ClusterSize() const { return cluster_m * cluster_n; }
  // Boxes of which a shared tile consists that comes to the CTAs along m or n; 1 for kOwn.
  int Parts(Reach to) const;
  // Arrivals at one barrier of a slot where every CTA or, of commits, every pair arrives once at those of `to`.
  int Arrivals(Reach to) const;
  // Whether clusters take over others: then the grid has one for each tile of a cluster.
  bool TakesOver() const;
  bool operator==(const Program&) const = default;
};

// How CTAs that share tiles use the workspace. REQUIRES: a role holds accumulators.
WorkspaceLayout WorkspaceOf(const Program& program);

// The text form. Parse(Print(p)) == p.
std::string PrintProgram(const Program& program);
Result<Program> ParseProgram(std::string_view text);

// Checks every invariant listed at the top of ir/verifier.cc. kInternal names the role, the op and the rule.
Status VerifyProgram(const Program& program, const target::Target& target);

}  // namespace laneshift::ir
