// The operations of a tile program: their attributes, and one row of facts for each kind (ir/ops.def). ir/program.h
// begins with their semantics.
//
// Thread-safety: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/binding.h"
#include "ir/cuda_core_attrs.h"
#include "ir/epilogue_steps.h"
#include "ir/layout.h"
#include "ir/tensor_core_attrs.h"
#include "laneshift/epilogue_function.h"
#include "target/target.h"

namespace laneshift::ir {

constexpr int kWarpgroupWarps = 4;        // that issue one wgmma together
constexpr int kRegisterAccumulators = 2;  // that a role may have

using ValueId = uint32_t;
constexpr ValueId kNoValue = ~ValueId{0};
enum class ValueType : uint8_t {
  kNone,
  kIndex,
  kPredicate,
  kSlot,
  kFragment,
  kLaneMask,
  kScaleFactors,
  kRows,
  kMetadata
};

enum class Side : uint8_t { kFull, kEmpty };    // the two barriers of a slot
enum class Edge : uint8_t { kBefore, kAfter };  // before or after a thread synchronisation
// What assigns the next unit of work to a cluster.
enum class WorkSource : uint8_t {
  kStatic,         // static persistent: tile i, then i + the number of clusters, and so on
  kLaunchControl,  // cluster launch control (CLC): the grid has a cluster for each tile, and a running cluster
                   // steals the work of others; a work.next at the end of each iteration names the next tile
  kGroups,         // as kStatic, the tiles of one group of rows after those of another; memory says where groups begin
  kMaskedGroups,   // the same of groups that begin at multiples of a number of rows; memory says how many rows count
  kPartsOfK,       // as kStatic, but each batch has a part of K; memory says where parts begin
};
// Whether rows of D belong to groups.
constexpr bool HasGroups(WorkSource source) {
  return source == WorkSource::kGroups || source == WorkSource::kMaskedGroups;
}
enum class Unit : uint8_t { kThread, kWarp };  // what arrives: every thread, or one lane of each warp

// Where in its cluster a copy or an arrival of a CTA goes. A pair acts as one, for both of its CTAs.
enum class MulticastScope : uint8_t {
  kOwn,  // the CTA itself, or the pair
  kM,
  kN,       // the CTAs in the same line along m, or along n
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
struct WorkAttrs {
  int raster = 1;
  WorkSource source = WorkSource::kStatic;
  int slices = 1;  // of a tile that is cut along K, at most; no more than its blocks of K
  int pingpong_index = 0,
      pingpong_roles = 1;  // this role has every `pingpong_roles`-th tile from tile `pingpong_index` on (ping-pong)
  int row_step = 0;  // rows of a group are divided evenly among its tiles, in multiples of so many; 0: tiles are full
  bool operator==(const WorkAttrs&) const = default;
};
inline constexpr size_t kTmaLoadOperands = 4;   // of `tma.load`: slot, inner, outer, batch; then rows
inline constexpr size_t kWorkTileOperands = 3;  // of `work`: rows, columns, batches; then see ops.def
inline constexpr int kWorkTileArguments = 3;    // of its body: row, column, batch
inline constexpr int kWorkSliceArguments = 5;   // where tiles are cut, after those
// Of groups, after those: first row, blocks of scale factors before it, rows from the tile's first on (with `row_step`
// those of the tile), and that row, counted from the group's first.
inline constexpr int kWorkGroupArguments = 4;
inline constexpr int kWorkPartArguments = 4;  // of parts of K, after those: begin, length, blocks, blocks passed over
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
  int channel = 0;
  bool trail = false;  // the second cursor: of lagging releases, or of a role that takes what it puts
  bool operator==(const CursorAttrs&) const = default;
};
struct ClusterIndexAttrs {
  Axis axis = Axis::kM;
  bool operator==(const ClusterIndexAttrs&) const = default;
};
struct BarrierAttrs {
  Side side = Side::kFull;
  bool inverted = false;  // wait: for the phase before, which a fresh barrier passes
  Unit by = Unit::kThread;
  MulticastScope to = MulticastScope::kOwn;  // the CTAs at whose barriers of the slot it arrives
  bool in_order = false;  // arrive: the same lane at all of these, at that of the first last, which may then go ahead
  bool operator==(const BarrierAttrs&) const = default;
};
struct ExpectAttrs {
  int bytes = 0;
  bool leader = false;  // only in the leader of a pair, for the bytes of both CTAs
  bool operator==(const ExpectAttrs&) const = default;
};
struct PendingAttrs {
  int pending = 0;
  bool operator==(const PendingAttrs&) const = default;
};
// What a warp does when it stamps.
enum class StampEvent : uint8_t { kBegin, kTile, kWait, kResume, kEnd };
struct StampAttrs {
  StampEvent event = StampEvent::kTile;
  int id = 0;  // unlike that of any other stamp of the program
  bool operator==(const StampAttrs&) const = default;
};
struct FenceAttrs {
  Edge edge = Edge::kBefore;
  bool operator==(const FenceAttrs&) const = default;
};
struct LoadAttrs {
  int tile = 0;  // entry of the slot's channel
  Operand operand = Operand::kA;
  bool taps = false;  // inner indexes the channels of all taps of a filter, whose taps have any pitch (B, by threads)
  bool transposed = false;  // elements are contiguous in memory along the tile's outer axis (by threads)
  MulticastScope to = MulticastScope::kOwn;  // kM, kN: multicast; a box goes to the same rows in all those CTAs
  bool whole = false;    // of a multicast: the first of those CTAs brings all of the tile, otherwise each a part
  bool halves = false;   // along N, columns come alternately from two halves of B (of a group)
  bool gathers = false;  // the rows of A are those that an index vector has for rows of the product (by threads)
  OperandComponent component =
      OperandComponent::kElements;  // others: lines of 16 bytes of blocks of 128 rows (ir/stored_tensor.h)
  int piece = 0;                    // bytes of an asynchronous copy of a thread: 4, 8 or 16; 0: through its registers

  // Whose boxes bring it. REQUIRES: a bulk copy does.
  Binding Map() const { return MapOf(operand, component); }
  bool operator==(const LoadAttrs&) const = default;
};
// Which rows of A `rows` rows of a tile are, for bulk copies of `at_once` of them. Of W warps warp w has copies w,
// w + W and so on, its lane l the l-th of these and each 32nd one after it.
struct FindRowsAttrs {
  int rows = 0, at_once = 1;
  bool operator==(const FindRowsAttrs&) const = default;
};
// Of these rows of A, what the columns of the tile have; `to` as in LoadAttrs.
struct RowLoadAttrs {
  int tile = 0;
  int rows = 0, at_once = 1;  // as found
  MulticastScope to = MulticastScope::kOwn;
  bool operator==(const RowLoadAttrs&) const = default;
};
// A tile of a convolution: `map` gives the box, which is written to the tile from row `row` on.
struct PixelLoadAttrs {
  static constexpr int kEveryColumn = -1;

  int tile = 0;
  Binding map = Binding::kMapA;
  int column = kEveryColumn;  // of the tile, in spans of its swizzle (SharedLayout::Columns)
  int row = 0;
  MulticastScope to = MulticastScope::kOwn;
  bool block = false;  // the map is a tiled one: a box has positions of several rows of an image, at no offsets

  // Bytes that it brings into `layout`, in boxes `box`.
  int Bytes(const SharedLayout& layout, const SharedLayout& box) const {
    return BoxBytes(layout, box) / (column == kEveryColumn ? 1 : layout.Columns());
  }
  bool operator==(const PixelLoadAttrs&) const = default;
};
struct GatherAttrs {
  int tile = 0;
  int vector = 1;  // elements of one access; a run of this length never crosses a tap
  // The extents of a small filter, which the kernel is specialised for, and the first (tap, channel) of the block.
  int channels = 0, columns = 0, rows = 0, planes = 0;  // 0: known only at run time
  int first = 0;
  bool operator==(const GatherAttrs&) const = default;
};
// A matrix of `outer` rows of `inner` contiguous elements.
struct PackAttrs {
  Operand operand = Operand::kA;
  Axis outer = Axis::kM, inner = Axis::kK;
  bool operator==(const PackAttrs&) const = default;
};
// A copy of filters in another order: see compiler/plan/filter_packing.h.
struct PackFilterAttrs {
  bool planes = false;      // three spatial dimensions
  bool dense = false;       // the taps of the copy follow each other without gaps; else each is a multiple of 16 bytes
  bool transposed = false;  // the elements of a row of the copy are of different filters; else those of one
  int merged = 1;           // groups of the filters in memory that are one in the copy
  bool operator==(const PackFilterAttrs&) const = default;
};
// A copy of pixels, a row for each position of the implicit-GEMM index: see compiler/plan/im2col_packing.h.
struct PackIm2colAttrs {
  bool planes = false;  // three spatial dimensions
  bool operator==(const PackIm2colAttrs&) const = default;
};
// A copy of pixels in lines of joined rows: see compiler/plan/window_packing.h.
struct PackWindowsAttrs {
  bool planes = false;  // three spatial dimensions
  int rows = 1;         // of the image in a line
  int channels = 1;     // of a pixel in the copy, with padding
  bool operator==(const PackWindowsAttrs&) const = default;
};
// The scale factors of an operand, from rows of one for each `run` elements of K to blocks of 128 rows x 4 factors.
struct PackFactorsAttrs {
  Operand operand = Operand::kA;
  int run = kMxRun;
  bool blocks = false;  // they lie in such blocks already
  bool halves = false;  // rows of the copy are alternately those of two halves (of B)
  bool operator==(const PackFactorsAttrs&) const = default;
};
inline constexpr int kPackedFactors = 16;  // of a row, that a lane reads at once
// Between matrices of numbers and of elements in blocks with scale factors (ir/block_quantizer.h).
struct BlockRowsAttrs {
  DataType numbers = DataType::kF32;  // their type
  OutputScaling scaling = OutputScaling::kMx;
  DataType type = DataType::kE4m3;  // of the elements
  bool operator==(const BlockRowsAttrs&) const = default;
};
inline constexpr int kBlockRowsPiece = 8;  // elements of a row that a lane has at once; the next lane has the next ones
inline constexpr int kPackedLine = 128;    // bytes; each row of a packed copy begins at a multiple
struct AccReadAttrs {
  int columns = 0;
  FragmentKind fragment = FragmentKind::kRowPerLane;
  bool operator==(const AccReadAttrs&) const = default;
};
struct AccRegistersAttrs {
  int column = 0, columns = 0;
  int accumulator = 0;  // which accumulator
  bool operator==(const AccRegistersAttrs&) const = default;
};
struct ScaleAttrs {
  Binding binding{};
  bool operator==(const ScaleAttrs&) const = default;
};
// Scale factors of rows of `fragment` and of runs of kScaleRun columns.
struct ScaleFactorsAttrs {
  FragmentKind fragment = FragmentKind::kRowPerLane;
  int runs = 1;
  int set = 0;                 // of registers
  Binding rows = Binding::kM;  // of a matrix of the scale factors of A; its own, where an index vector says which
  bool packed = false;         // ue8m0, four of A's in a word (ScaleFactorType)
  bool operator==(const ScaleFactorsAttrs&) const = default;
};
struct ReadScaleFactorsAttrs {
  int set = 0;
  bool packed = false;
  bool operator==(const ReadScaleFactorsAttrs&) const = default;
};
// Tiles of the slot, and the columns of the accumulator that are multiplied; 0: all of them.
struct SlotScaleFactorsAttrs {
  int a_tile = 0, b_tile = 0;
  FragmentKind fragment = FragmentKind::kRowPerLane;
  int column = 0, columns = 0;
  bool aligned = false;     // the first row of A begins a line
  bool packed = false;      // ue8m0, four of A's in a word
  bool after_mmas = false;  // no read moves before MMAs that are already issued
  bool b_vector = false;    // B's are one vector of words, of which each run of columns has a tile
  bool operator==(const SlotScaleFactorsAttrs&) const = default;
};
struct ClearPromotedAttrs {
  FragmentKind fragment = FragmentKind::kRowPerLane;
  bool operator==(const ClearPromotedAttrs&) const = default;
};
struct AddPromotedAttrs {
  int column = 0;
  bool operator==(const AddPromotedAttrs&) const = default;
};
struct ReadPromotedAttrs {
  int column = 0, columns = 0;
  FragmentKind fragment = FragmentKind::kRowPerLane;
  bool operator==(const ReadPromotedAttrs&) const = default;
};
// How a row index addresses memory: rows `pitch` apart, positions of the implicit-GEMM index of a convolution, filters
// of a group, of which the batch has each tap, or rows `pitch` apart that belong to groups, of which the batch is one:
// rows from the group's end on are outside.
enum class RowMap : uint8_t { kMatrix, kPixels, kFilters, kGroups };

// What an operand of the epilogue does with an element.
enum class Combine : uint8_t { kAdd, kMultiply };

struct CombineVectorAttrs {
  Binding base = Binding::kBaseBias;
  Combine how = Combine::kAdd;
  BiasAxis axis = BiasAxis::kN;
  DataType type = DataType::kF32;
  RowMap rows = RowMap::kMatrix;  // pixels, groups: each group has its own part of the vector
  bool blocks = false;            // one value for each block of kScaleRun rows and columns; the axis is none
  bool gated = false;             // applies to columns after the gated linear unit
  bool halves = false;   // split gate/up layout: the vector consists of two halves, from which columns come alternately
  bool factors = false;  // of rows of A and columns of B (Scaling::kRow): those of each matrix of a batch
  bool operator==(const CombineVectorAttrs&) const = default;
};
struct CombineMatrixAttrs {
  Binding base = Binding::kBaseC;
  Combine how = Combine::kAdd;
  Operand operand = Operand::kC;  // whose layout it has
  DataType type = DataType::kF32;
  int vector = 1;  // as in GlobalAttrs
  RowMap rows = RowMap::kMatrix;
  bool beta = false;                          // times beta first
  Function derivative = Function::kIdentity;  // applied to the element of the matrix, if not the identity
  int number = 0;  // the index of the derivative's first number in the epilogue, if it has any
  bool operator==(const CombineMatrixAttrs&) const = default;
};
struct PrefetchMatrixAttrs {
  Binding base = Binding::kBaseC;
  Operand operand = Operand::kC;  // whose layout it has
  DataType type = DataType::kF32;
  RowMap rows = RowMap::kMatrix;
  int tile_rows = 0, tile_columns = 0;  // in whole 16 bytes; rows of the matrix begin at multiples of these
  bool operator==(const PrefetchMatrixAttrs&) const = default;
};
// How a user's function is called: its operands and numbers are those of the epilogue from `operand` and `number` on.
struct CallAttrs {
  int function = 0;
  int operand = 0, number = 0;
  int vector = 1;  // as in GlobalAttrs, of elements of D
  RowMap rows = RowMap::kMatrix;
  bool gated = false;   // as in CombineVectorAttrs, for the function's vectors; also if the function combines pairs
  bool halves = false;  // the same
  bool operator==(const CallAttrs&) const = default;
};
struct MapAttrs {
  Function function = Function::kIdentity;
  int number = 0;            // the index of the function's first number in the epilogue, if it has any
  bool approximate = false;  // to the precision of 16-bit outputs
  bool operator==(const MapAttrs&) const = default;
};
// A gated linear unit: columns 2 j and 2 j + 1 become one, function(first) * second.
struct GateAttrs {
  Function function = Function::kSilu;
  bool approximate = false;  // as in MapAttrs
  bool operator==(const GateAttrs&) const = default;
};
// How elements are reduced: added to the number in memory, or its maximum with their magnitudes.
enum class Reduction : uint8_t { kSum, kAmax };
struct ReduceAttrs {
  Binding base{BindingFamily::kBaseE};
  Reduction how = Reduction::kSum;
  BiasAxis axis = BiasAxis::kN;  // m: a number for each row, n: for each column, none: one
  RowMap rows = RowMap::kMatrix;
  bool gated = false;   // as in CombineVectorAttrs
  bool halves = false;  // the same
  bool operator==(const ReduceAttrs&) const = default;
};
// Reductions of rows or columns that are stored as partial rows in the workspace. The partial rows of a matrix are
// counted along the other axis: `rows_per_unit` for each `unit` of it, the last one possibly partial.
struct StorePartialRowAttrs {
  Binding base{BindingFamily::kBaseE};
  BiasAxis axis = BiasAxis::kN;  // as in ReduceAttrs, and so are the next members
  RowMap rows = RowMap::kMatrix;
  bool gated = false, halves = false;
  int unit = 1, rows_per_unit = 1;

  ReduceAttrs Sums() const { return {base, Reduction::kSum, axis, rows, gated, halves}; }
  bool operator==(const StorePartialRowAttrs&) const = default;
};
// The index of the reduction, and how many partial rows become one; 0: all are added to the caller's result.
struct ReducePartialRowsAttrs {
  int reduction = 0;
  int fold = 0;
  bool operator==(const ReducePartialRowsAttrs&) const = default;
};
// How D is quantised. Blocks are runs of columns, which a fragment has as a whole.
struct QuantizeAttrs {
  OutputScaling scaling = OutputScaling::kMx;
  DataType type = DataType::kE4m3;  // of the elements
  bool operator==(const QuantizeAttrs&) const = default;
};
struct GlobalAttrs {
  Operand operand = Operand::kD;  // whose layout it has
  Binding base = Binding::kBaseD;
  DataType type = DataType::kF32;
  int vector = 1;  // elements of one access; each run of this many columns is entirely inside or outside
  RowMap rows = RowMap::kMatrix;
  bool operator==(const GlobalAttrs&) const = default;
};
struct ArriveAttrs {
  int sharers = 1;  // adjacent warps that arrive together
  bool operator==(const ArriveAttrs&) const = default;
};
struct StageAttrs {
  int buffer = 0;
  int column = 0;  // the column of the copy at which the fragment begins
  bool operator==(const StageAttrs&) const = default;
};
struct BulkStoreAttrs {
  int buffer = 0;
  Binding map = Binding::kMapD;  // its box is the part of a copy that is stored: all columns, or the first ones
  // kGroups: if a copy has rows beyond the end of the unit's group, threads store those before it.
  RowMap rows = RowMap::kMatrix;
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
  bool words =
      false;  // rows of D have any alignment and are stored by words; else they are whole, aligned 16-byte pieces
  bool operator==(const StoreRowsAttrs&) const = default;
};
struct WarpRowAttrs {
  int rows = 0;
  bool operator==(const WarpRowAttrs&) const = default;
};

using Attrs =
    std::variant<NoAttrs, ConstAttrs, ParamAttrs, ClusterIndexAttrs, WorkAttrs, ForAttrs, ChannelAttrs, ReleaseAttrs,
                 DrainAttrs, CursorAttrs, BarrierAttrs, ExpectAttrs, PendingAttrs, StampAttrs, FenceAttrs, LoadAttrs,
                 FindRowsAttrs, RowLoadAttrs, PixelLoadAttrs, GatherAttrs, PackAttrs, PackFilterAttrs, PackIm2colAttrs,
                 PackWindowsAttrs, PackFactorsAttrs, BlockRowsAttrs, MmaAttrs, MmaScaledAttrs, MmaSparseAttrs,
                 ReadMetadataAttrs, BlockCopyAttrs, MmaTensorAttrs, TensorCopyAttrs, TensorShiftAttrs,
                 TensorRefreshAttrs, RowBorderMaskAttrs, DepthwiseAttrs, DepthwiseGradientAttrs, GemvAttrs,
                 LoadSumsAttrs, AccReadAttrs, AccRegistersAttrs, ScaleAttrs, CombineVectorAttrs, CombineMatrixAttrs,
                 PrefetchMatrixAttrs, MapAttrs, CallAttrs, GateAttrs, ReduceAttrs, StorePartialRowAttrs,
                 ReducePartialRowsAttrs, ScaleFactorsAttrs, ReadScaleFactorsAttrs, SlotScaleFactorsAttrs,
                 ClearPromotedAttrs, AddPromotedAttrs, ReadPromotedAttrs, QuantizeAttrs, GlobalAttrs, ArriveAttrs,
                 StageAttrs, BulkStoreAttrs, BulkWaitAttrs, StoreRowsAttrs, WarpRowAttrs>;

enum class OpKind : uint8_t {
#define OP(Name, ...) k##Name,
#include "ir/ops.def"
};

enum class RoleKind : uint8_t { kLoad, kCopy, kMma, kEpilogue, kMath, kSchedule };

// The kinds of role in which an op may be.
enum RoleSet : uint32_t {
  kLoadRole = 1u << static_cast<int>(RoleKind::kLoad),
  kCopyRole = 1u << static_cast<int>(RoleKind::kCopy),
  kMmaRole = 1u << static_cast<int>(RoleKind::kMma),
  kEpilogueRole = 1u << static_cast<int>(RoleKind::kEpilogue),
  kMathRole = 1u << static_cast<int>(RoleKind::kMath),
  kScheduleRole = 1u << static_cast<int>(RoleKind::kSchedule),
  kReaders = kEpilogueRole | kMathRole,  // of accumulators
  kMultipliers = kMmaRole | kMathRole,
  kAnyRole = kLoadRole | kCopyRole | kReaders | kMultipliers | kScheduleRole,
};

// What executes an op.
enum class Executor : uint8_t { kAny, kOneThread, kWarps };

// The category by which programs are counted, timed and placed.
enum class OpCategory : uint8_t {
  kIndex,        // index arithmetic
  kStructure,    // loops and conditions
  kWork,         // which output tiles a CTA computes
  kChannel,      // mbarriers and fences, into which those are lowered
  kBarrier,      // what those are lowered to
  kBulkLoad,     // into a ring, by the bulk copy engine
  kThreadLoad,   // into a ring, by threads
  kMemory,       // from memory to memory
  kMma,          // MMAs
  kFma,          // products of CUDA cores
  kTensorMove,   // of operands in Tensor Memory
  kAccumulator,  // accumulators and promoted accumulators, to and from fragments
  kElementwise,  // of a fragment's elements
  kReduction,    // of a fragment's elements, to memory
  kStore,        // of D
  kSplitK,       // partials of tiles that CTAs share
};

enum class StageSet : uint8_t { kAny, kScheduled, kLowered };
enum class Stage : uint8_t { kScheduled, kLowered };

struct OpInfo {
  std::string_view name, mnemonic, operands;
  ValueType result;
  StageSet stages;
  int body;  // index arguments of the region, or -1
  OpCategory category;
  Executor executor;
  uint32_t roles;  // a RoleSet
  target::Feature needs;
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

  // Arguments of the body; -1: the op has none.
  int BodyArguments() const {
    const int least = InfoOf(kind).body;
    const auto* work = std::get_if<WorkAttrs>(&attrs);
    if (work == nullptr) return least;
    if (HasGroups(work->source)) return least + kWorkGroupArguments;
    if (work->source == WorkSource::kPartsOfK) return least + kWorkPartArguments;
    return least + (operands.size() > kWorkTileOperands ? kWorkSliceArguments : 0);
  }
  // Of a loop: whether an operand says how many rows of the tile count in it.
  bool CountsRows() const { return kind == OpKind::kFor && operands.size() > 2; }
  // Whether a bulk copy leaves out boxes of rows that are not multiplied.
  bool LeavesOutRows() const { return kind == OpKind::kTmaLoad && operands.size() > kTmaLoadOperands; }
  // How many such ops make up a block of K.
  int PartsOfBlock() const {
    const auto* mma = std::get_if<MmaScaledAttrs>(&attrs);
    const auto* copy = std::get_if<BlockCopyAttrs>(&attrs);
    return mma != nullptr ? mma->parts : copy != nullptr ? copy->parts : 1;
  }
  template <typename A>
  const A& As() const {
    return std::get<A>(attrs);
  }
  bool operator==(const Op&) const = default;
};

// Whether an op of the body, or of a body in it, has the property.
template <typename Property>
bool AnyOp(const std::vector<Op>& body, const Property& has) {
  return std::any_of(body.begin(), body.end(), [&](const Op& op) { return has(op) || AnyOp(op.body, has); });
}

}  // namespace laneshift::ir
