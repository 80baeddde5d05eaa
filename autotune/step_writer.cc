#include "autotune/step_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autotune/function_cost.h"
#include "autotune/thread_products.h"
#include "base/check.h"
#include "base/integer_math.h"
#include "compiler/plan/constant_indices.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/late_sends.h"
#include "ir/metadata_block.h"
#include "ir/mma.h"

namespace laneshift::autotune {
namespace {

using ir::Op;
using ir::OpCategory;
using ir::OpKind;
using ir::SharedLayout;
using ir::ValueId;

constexpr int64_t kAllIterations = int64_t{1} << 20;
constexpr double kPromoteOperations = 1;  // of an element
// With scale=block, of a lane for each group of columns that always share a factor of B: its product with those of two
// rows of A, and its selection (counted in SASS: 35 for the eleven groups of a tile of 176 columns).
constexpr double kGroupOperations = 3;
// Of a scale factor of a column of the accumulator: its product with that of the rows, and the load, which may be one
// for two or four.
constexpr double kFactorOperations = 1.5;
// L2 is asked for lines. Rows of an operand along M or N are narrower where its tile is not a multiple of them:
// 4096 x 7168 x 32768 in four parts of K, both operands along M or N, takes 4188 us in tiles of 128x160, whose rows of
// B have 64 bytes, and 2693 in tiles of 128x192 (H100, 2026-11-28; on an H200 3468, and 2957 in tiles of 128x128).
constexpr double kLineBytes = 128;
constexpr double kQuadBytes = ir::WorkspaceLayout::kQuadBytes;

double Bytes(DataType type) { return static_cast<double>(DataTypeBits(type)) / 8; }

// One role of a program as steps.
class StepWriter {
 public:
  StepWriter(const Problem& problem, const compiler::ProblemNumbers& numbers, const ir::Program& program,
             const target::Target& target, const ir::Role& role, const WrittenPart& part)
      : problem_(problem),
        numbers_(numbers),
        program_(program),
        target_(target),
        role_(role),
        indices_(numbers, program),
        slots_(program.values.size(), -1),
        part_(part) {}

  PipelineRole Write() {
    bool after = false;
    for (const Op& op : role_.body) {
      if (const auto* work = std::get_if<ir::WorkAttrs>(&op.attrs)) {
        if (op.BodyArguments() > ir::kWorkTileArguments && work->source == ir::WorkSource::kStatic) NotePart(op);
        if (work->source == ir::WorkSource::kPartsOfK) indices_.SetPartOfK(op);
        steps_.pingpong_index = work->pingpong_index;
        steps_.pingpong_roles = work->pingpong_roles;
        WriteAll(op.body, part_.iterations, steps_.tile);
        after = true;
      } else {
        const double products = products_;
        WriteOp(op, kAllIterations, after ? steps_.after : steps_.before);
        products_ = products;
      }
    }
    return std::move(steps_);
  }

  // MMAs of one tile, and those that are listed.
  double products() const { return products_; }

 private:
  // The longest slice stands for all.
  void NotePart(const Op& op) {
    indices_.Set(op.result + 3, 0);
    indices_.Set(op.result + 4, base::CeilDiv(indices_.At(op.operands[ir::kWorkTileOperands]), part_.parts));
  }

  // Of consecutive loops over slots the later ones are not listed once one was shortened.
  void WriteAll(const std::vector<Op>& body, int64_t listed, StepList& steps) {
    bool cut = false;
    StepList unlisted;
    for (const Op& op : body) {
      const bool slots = op.kind == OpKind::kFor && MovesSlots(op.body);
      WriteOp(op, listed, slots && cut ? unlisted : steps);
      cut |= slots && ListedIterations(op, listed) < indices_.Iterations(op);
    }
  }

  void WriteOp(const Op& op, int64_t listed, StepList& steps) {
    indices_.Note(op);
    NoteSlot(op);
    switch (InfoOf(op.kind).category) {
      case OpCategory::kStructure:
        return op.kind == OpKind::kFor ? WriteLoop(op, listed, steps) : WriteAll(op.body, listed, steps);
      case OpCategory::kChannel:
        return WriteChannelOp(op, steps);
      case OpCategory::kBulkLoad:
        return Add(steps, BulkLoad(op));
      case OpCategory::kThreadLoad:
        return Add(steps, op.kind == OpKind::kGatherPixels ? Gather(op) : Copy(op));
      case OpCategory::kMma:
        return WriteProduct(op, steps);
      case OpCategory::kFma:
        return WriteFma(op, steps);
      case OpCategory::kTensorMove:
        return Add(steps, TensorMove(op));
      case OpCategory::kAccumulator:
        return WriteAccumulatorOp(op, steps);
      case OpCategory::kElementwise:
        return WriteElementwise(op, steps);
      case OpCategory::kReduction:
        return WriteReduction(op, steps);
      case OpCategory::kStore:
        return WriteStore(op, steps);
      case OpCategory::kSplitK:
        return WriteSplitK(op, steps);
      // These take no time themselves; kernels that only move memory are timed by move_time.h.
      case OpCategory::kIndex:
      case OpCategory::kWork:
      case OpCategory::kMemory:
        return;
      case OpCategory::kBarrier:
        LS_CHECK(false, "a pipeline is made of a scheduled program");
    }
  }

  // The simulation skips the slots of the other ping-pong role, and resident slots have been waited for.
  void WriteChannelOp(const Op& op, StepList& steps) {
    const auto* channel = std::get_if<ir::ChannelAttrs>(&op.attrs);
    if (op.kind == OpKind::kPut || op.kind == OpKind::kReserve)
      return Add(steps, {.kind = StepKind::kPut, .ring = channel->channel});
    if (op.kind == OpKind::kTake) return Add(steps, {.kind = StepKind::kTake, .ring = channel->channel});
    if (op.kind == OpKind::kAwait) {
      for (int64_t i = 0; i < indices_.At(op.operands[0]); ++i)
        Add(steps, {.kind = StepKind::kTake, .ring = channel->channel});
    }
    if (op.kind == OpKind::kSend) {
      if (program_.channels[static_cast<size_t>(RingOf(op))].stored) Add(steps, {.kind = StepKind::kTensorStore});
      return Add(steps, {.kind = StepKind::kSend, .ring = RingOf(op), .at_once = IsOrder(op)});
    }
    if (op.kind == OpKind::kSendLate || op.kind == OpKind::kDrainSends) {
      const bool drains = op.kind == OpKind::kDrainSends;
      const int ring = drains ? channel->channel : RingOf(op);
      return Add(steps, {.kind = drains ? StepKind::kDrainSends : StepKind::kSendLate,
                         .ring = ring,
                         .lag = drains ? 0 : ir::SlotsOnTheirWay(program_, ring)});
    }
    if (op.kind == OpKind::kRelease || op.kind == OpKind::kRetire) {
      if (IsOrder(op)) return Add(steps, {.kind = StepKind::kRelease, .ring = RingOf(op), .at_once = true});
      // MMAs into registers are waited for.
      const bool math = role_.kind == ir::RoleKind::kMath;
      return Add(steps, {.kind = math ? StepKind::kDrain : StepKind::kRelease, .ring = RingOf(op)});
    }
    if (op.kind == OpKind::kReleaseLate)
      return Add(steps, {.kind = StepKind::kReleaseLate, .ring = RingOf(op), .lag = op.As<ir::ReleaseAttrs>().lag});
    if (op.kind == OpKind::kMmaWait) return Add(steps, {.kind = StepKind::kAwaitProducts});
    if (const auto* drain = std::get_if<ir::DrainAttrs>(&op.attrs))
      Add(steps, {.kind = StepKind::kDrain, .ring = drain->channel, .lag = drain->lag});
  }

  Step BulkLoad(const Op& op) const {
    if (const auto* pixels = std::get_if<ir::PixelLoadAttrs>(&op.attrs)) {
      const SharedLayout& tile = Tile(op, 0, pixels->tile);
      const int parts = program_.Parts(pixels->to);
      Step load = Load(tile, pixels->Bytes(tile, program_.FindParam(pixels->map)->box) * parts, false, parts);
      load.pixels = !pixels->block;
      return load;
    }
    if (const auto* rows = std::get_if<ir::RowLoadAttrs>(&op.attrs)) {
      const SharedLayout& tile = Tile(op, 0, rows->tile);
      Step load = Load(tile, tile.CopiedBytes(), false, program_.Parts(rows->to));
      // The threads of a warp issue one after the other.
      load.issues *= static_cast<double>(rows->rows) / (rows->at_once * role_.warps);
      return load;
    }
    const auto& attrs = op.As<ir::LoadAttrs>();
    const SharedLayout& tile = Tile(op, 0, attrs.tile);
    Step load = Load(tile, tile.CopiedBytes(), attrs.operand == ir::Operand::kB, program_.Parts(attrs.to));
    load.cached = program_.channels[static_cast<size_t>(RingOf(op))].resident;
    if (attrs.component != ir::OperandComponent::kElements) {
      load.row_bytes = ir::ScaleBlock::kMapRowBytes;
    } else if (!load.along_k) {
      load.requested = kLineBytes / load.row_bytes;
    }
    return load;
  }

  Step Copy(const Op& op) const {
    const auto& attrs = op.As<ir::LoadAttrs>();
    const SharedLayout& tile = Tile(op, 0, attrs.tile);
    if (attrs.piece != 0) return CopyPieces(op, tile, attrs);
    // Rows of A that are gathered come in pieces of 16 bytes, where they are whole ones.
    const int piece = 16 / tile.ElementBytes();
    const int at_once = attrs.gathers ? compiler::AccessWidth(numbers_.contraction().a, piece) : 1;
    return {.kind = StepKind::kGather,
            .bytes = static_cast<double>(tile.Bytes()),
            .of_b = attrs.operand == ir::Operand::kB,
            .accesses = static_cast<double>(tile.Bytes()) / tile.ElementBytes() / (at_once == piece ? piece : 1)};
  }

  // A copy takes a warp as long as eight bytes of it do. Rows that do not begin with a sector of L2 have parts of one
  // more.
  Step CopyPieces(const Op& op, const SharedLayout& tile, const ir::LoadAttrs& attrs) const {
    constexpr double kPieceUnit = 8;  // bytes
    Step load = Load(tile, tile.Bytes(), attrs.operand == ir::Operand::kB, 1);
    load.cached = program_.channels[static_cast<size_t>(RingOf(op))].resident;
    load.issues = 0;
    load.accesses = tile.Bytes() * (1.0 / attrs.piece + 1.0 / kPieceUnit) / role_.warps;
    if (attrs.piece < 16) load.requested = (load.row_bytes + kSectorBytes) / load.row_bytes;
    return load;
  }

  void WriteProduct(const Op& op, StepList& steps) {
    if (op.kind == OpKind::kMmaRegisters) {
      const int blocks = program_.Blocks(role_, op.As<ir::MmaAttrs>());
      Step product{.rows = static_cast<double>(target_.mma.most_rows), .units = blocks * Warpgroups()};
      // Of two warpgroups that promote their tiles, the tensor core interleaves the MMAs, which end together. Those
      // that promote block by block are apart, and so are three: one promotes while the tensor core works for the
      // others. In all cases the tensor core is idle for about as long as copies take to write the operands, though by
      // Nsight Compute it is not that which it waits for (docs/timing-model.md).
      if (Has<ir::AddPromotedAttrs>(role_.body) && Warpgroups() > 1) {
        const bool by_block = op.As<ir::MmaAttrs>().block != ir::MmaAttrs::kEveryBlock;
        product.interleaved = !by_block && Warpgroups() == 2;
        product.own = product.interleaved ? 1 : 1 / Warpgroups();
        product.written = static_cast<double>(program_.tile_m + program_.tile_n) * blocks / program_.Blocks(role_);
      }
      product.written += FactorReads(role_.body) * role_.warps * blocks + MetadataReads() * product.units;
      return Multiply(steps, product);
    }
    const auto* tensor = std::get_if<ir::MmaTensorAttrs>(&op.attrs);
    if (tensor == nullptr) {
      return Multiply(steps, {.rows = static_cast<double>(program_.Rows()),
                              .depth = Depth() / op.PartsOfBlock(),
                              .written = StoredFactors() / kStepBytes / Depth(),
                              .tensor_memory = true});
    }
    Multiply(steps, {.rows = static_cast<double>(program_.tile_m), .a_shared = false, .tensor_memory = true});
    if (tensor->shift) Add(steps, {.kind = StepKind::kTensorMove, .issues = Depth()});
  }

  void WriteFma(const Op& op, StepList& steps) {
    if (const auto* depthwise = std::get_if<ir::DepthwiseAttrs>(&op.attrs)) {
      rows_ = base::CeilDiv(program_.tile_m, FragmentPasses(*depthwise, program_, role_.warps));
      columns_ = program_.tile_n;
      return Add(steps, DepthwiseStep(*depthwise, program_, numbers_, role_.warps, Elements()));
    }
    if (const auto* taps = std::get_if<ir::DepthwiseGradientAttrs>(&op.attrs)) {
      if (op.kind != OpKind::kAddTaps) return;
      products_ += 1;
      return Add(steps, FilterGradientStep(*taps, program_, Tile(op, 0, 0).outer, role_.warps));
    }
    const int64_t depth = std::max<int64_t>(0, indices_.At(op.operands[3]) - indices_.At(op.operands[2]));
    for (const Step& step : GemvSteps(op.As<ir::GemvAttrs>(), program_, depth, role_.warps)) Add(steps, step);
  }

  Step TensorMove(const Op& op) const {
    if (const auto* shift = std::get_if<ir::TensorShiftAttrs>(&op.attrs))
      return {.kind = StepKind::kTensorMove, .issues = Depth() * shift->issues};
    if (const auto* blocks = std::get_if<ir::BlockCopyAttrs>(&op.attrs)) {
      const SharedLayout& tile = Tile(op, 1, blocks->tile);
      const double bytes = static_cast<double>(tile.Bytes()) / blocks->parts;
      if (op.kind == OpKind::kBlockStore) return {.kind = StepKind::kTensorStore, .bytes = bytes, .issues = 0};
      return {.kind = StepKind::kTensorCopy, .bytes = bytes, .issues = static_cast<double>(blocks->Blocks(tile))};
    }
    const bool copy = op.kind == OpKind::kTensorCopy;
    return {.kind = copy ? StepKind::kTensorCopy : StepKind::kTensorMove,
            .bytes = Depth() * (copy ? program_.tile_m : ir::kRefreshedRows) * kStepBytes,
            .issues = Depth()};
  }

  // Registers are read and cleared, and scale factors loaded, while something longer runs.
  void WriteAccumulatorOp(const Op& op, StepList& steps) {
    if (const auto* read = std::get_if<ir::AccReadAttrs>(&op.attrs)) return ReadAccumulator(steps, read->columns);
    if (const auto* read = std::get_if<ir::AccRegistersAttrs>(&op.attrs)) columns_ = read->columns;
    if (const auto* read = std::get_if<ir::ReadPromotedAttrs>(&op.attrs)) columns_ = read->columns;
    if (std::holds_alternative<ir::LoadSumsAttrs>(op.attrs)) ReadAccumulator(steps, program_.Columns());
    if (const auto* slot = std::get_if<ir::SlotScaleFactorsAttrs>(&op.attrs)) ReadFactors(steps, *slot);
    if (std::holds_alternative<ir::AddPromotedAttrs>(op.attrs)) AddPromoted(steps);
  }

  // Of columns of the accumulator, a factor is for as many elements as a lane has rows.
  void ReadFactors(StepList& steps, const ir::SlotScaleFactorsAttrs& attrs) {
    if (program_.row_axis == ir::Axis::kM) return;
    const int rows_of_lane = ir::FragmentLayout{attrs.fragment}.Facts().rows_of_lane;
    const int columns = attrs.columns == 0 ? program_.Columns() : attrs.columns;
    Add(steps, {.kind = StepKind::kConvert,
                .elements = static_cast<double>(columns) * rows_ / Warpgroups(),
                .operations = kFactorOperations / rows_of_lane});
  }

  // Warpgroups that multiply add their own rows, and do not wait for each other.
  void AddPromoted(StepList& steps) {
    if (role_.kind != ir::RoleKind::kMath) return Add(steps, {.kind = StepKind::kStage, .elements = Elements()});
    double operations = kPromoteOperations;
    if (program_.row_axis == ir::Axis::kM && numbers_.contraction().scale == Scaling::kBlock) {
      const double elements = ir::ColumnsOfScale(program_.tile_n) / 2.0;  // of a lane, in a group
      operations += kGroupOperations / elements;
    }
    Add(steps, {.kind = StepKind::kConvert, .elements = Elements() / Warpgroups(), .operations = operations});
  }
  // Loads of a warp for the scale factors of the columns that its lanes hold, each as long as a row of an operand:
  // lanes that read the same take one turn, and two adjacent factors no longer than one (fitted to six kernels on an
  // H200, 2026-11-27).
  double FactorReads(const std::vector<Op>& body) const {
    constexpr double kAdjacent = 2;
    if (program_.row_axis == ir::Axis::kM) return 0;
    for (const Op& op : body) {
      if (const double inside = FactorReads(op.body); inside > 0) return inside;
      const auto* attrs = std::get_if<ir::SlotScaleFactorsAttrs>(&op.attrs);
      if (attrs == nullptr) continue;
      const int factors = ir::FragmentLayout{attrs->fragment}.NumberOfColumn(program_.Columns());
      return factors / (attrs->aligned ? kAdjacent : 1);
    }
    return 0;
  }
  // What warps load from shared memory for an instruction of 64 rows with a sparse A. An access takes two turns of 128
  // bytes for the 16 lines of a warp: all of their words, or half of them from the same banks.
  double MetadataReads() const {
    if (!program_.sparse_a) return 0;
    const auto registers = ir::MetadataRegisters::Of(program_.OperandBits(), program_.tile_k);
    const double bytes = target_.mma.most_rows * ir::MetadataBlock::kLineBytes * registers.Accesses();
    return bytes / registers.instructions / kStepBytes;
  }
  // Bytes of shared memory that the warps of another role read for a block of K.
  double StoredFactors() const {
    const bool stores = std::any_of(program_.channels.begin(), program_.channels.end(),
                                    [](const ir::Channel& channel) { return channel.stored; });
    if (!stores) return 0;
    double bytes = 0;
    for (const ir::Channel& channel : program_.channels) {
      if (!channel.own) continue;
      for (const ir::TileSlot& tile : channel.tiles) bytes += ir::kWarpgroupWarps * tile.layout.Bytes();
    }
    return bytes;
  }
  // Whether there is an op with such attributes.
  template <typename Attrs>
  static bool Has(const std::vector<Op>& body) {
    return ir::AnyOp(body, [](const Op& op) { return std::holds_alternative<Attrs>(op.attrs); });
  }
  double Warpgroups() const { return static_cast<double>(role_.warps) / ir::kWarpgroupWarps; }

  void WriteElementwise(const Op& op, StepList& steps) {
    if (const auto* map = std::get_if<ir::MapAttrs>(&op.attrs)) return Evaluate(steps, map->function, map->approximate);
    if (const auto* call = std::get_if<ir::CallAttrs>(&op.attrs)) return Call(steps, *call);
    if (const auto* gate = std::get_if<ir::GateAttrs>(&op.attrs)) {
      columns_ /= 2;
      return Evaluate(steps, gate->function, gate->approximate);
    }
    if (const auto* matrix = std::get_if<ir::CombineMatrixAttrs>(&op.attrs)) {
      Add(steps, {.kind = StepKind::kReadGlobal, .bytes = Elements() * Bytes(matrix->type)});
      if (matrix->derivative != ir::Function::kIdentity) Evaluate(steps, matrix->derivative, false);
      return;
    }
    if (const auto* quantize = std::get_if<ir::QuantizeAttrs>(&op.attrs)) {
      // The largest magnitude, and the product with the reciprocal of a factor.
      const double run = ir::BlockScalingOf(quantize->scaling)->run;
      Add(steps, {.kind = StepKind::kConvert, .elements = Elements(), .operations = 4});
      return Add(steps, {.kind = StepKind::kStoreThreads,
                         .bytes = Elements() / run,
                         .row_bytes = static_cast<double>(ir::ScaleBlock::kFactors)});
    }
    const double operations = op.kind == OpKind::kCombineVector ? 1 : 0;
    Add(steps, {.kind = StepKind::kConvert, .elements = Elements(), .operations = operations});
  }

  void WriteReduction(const Op& op, StepList& steps) {
    Add(steps, {.kind = StepKind::kConvert, .elements = Elements(), .operations = 1});
    const auto* store = std::get_if<ir::StorePartialRowAttrs>(&op.attrs);
    if (store == nullptr) return;
    // One for each row of the tile, or for each column of every fragment; or the other way round.
    const bool of_rows = (store->axis == BiasAxis::kM) == (program_.row_axis == ir::Axis::kM);
    const double reductions = of_rows ? rows_ : columns_ * role_.warps;
    Add(steps, {.kind = StepKind::kStoreThreads, .bytes = reductions * kSumBytes, .row_bytes = kSumBytes * 8});
  }

  void WriteStore(const Op& op, StepList& steps) {
    if (const auto* stage = std::get_if<ir::StageAttrs>(&op.attrs)) {
      const double bytes = Elements() * ir::BitsOf(BufferOf(stage->buffer).layout.type) / 8;
      staged_bytes_ += bytes;
      return Add(steps, {.kind = StepKind::kStage, .bytes = bytes, .elements = Elements()});
    }
    if (const auto* bulk = std::get_if<ir::BulkStoreAttrs>(&op.attrs)) {
      const SharedLayout& box = program_.FindParam(bulk->map)->box;
      return Add(steps, {.kind = StepKind::kStore,
                         .bytes = std::exchange(staged_bytes_, 0),
                         .row_bytes = static_cast<double>(box.RowBytes())});
    }
    if (const auto* wait = std::get_if<ir::BulkWaitAttrs>(&op.attrs))
      return Add(steps, {.kind = StepKind::kStoreWait, .lag = wait->pending});
    if (const auto* rows = std::get_if<ir::StoreRowsAttrs>(&op.attrs)) {
      return Add(steps, {.kind = StepKind::kStoreThreads,
                         .bytes = std::exchange(staged_bytes_, 0),
                         .row_bytes = static_cast<double>(BufferOf(rows->buffer).layout.Span()),
                         .staged = !rows->words});
    }
    const auto& attrs = op.As<ir::GlobalAttrs>();
    const bool adjacent = program_.box_lines > 0;  // lanes store what is next to each other
    Add(steps, {.kind = StepKind::kStoreThreads,
                .bytes = Elements() * Bytes(attrs.type),
                .row_bytes = (adjacent ? program_.tile_n : attrs.vector) * Bytes(attrs.type),
                .elements = Elements()});
  }

  void WriteSplitK(const Op& op, StepList& steps) {
    if (part_.parts == 1) return;
    if (op.kind == OpKind::kStoreClusterSums)
      return Add(steps, {.kind = StepKind::kStoreSums, .bytes = Elements() * kSumBytes});
    if (op.kind == OpKind::kAddClusterSums)
      return Add(steps, {.kind = StepKind::kAddSums, .bytes = Elements() * kSumBytes * (program_.cluster_k - 1)});
    if (op.kind == OpKind::kPartialStore)
      return Add(steps, {.kind = StepKind::kStoreThreads, .bytes = Elements() * kSumBytes, .row_bytes = kQuadBytes});
    if (op.kind == OpKind::kPartialSum)
      return Add(steps,
                 {.kind = StepKind::kReadGlobal, .bytes = Elements() * kSumBytes * static_cast<double>(part_.parts)});
    // After the stores have completed, the counter answers.
    for (int i = 0; i < 2; ++i) Add(steps, {.kind = StepKind::kReadGlobal, .bytes = kSumBytes});
  }

  static void Add(StepList& steps, const Step& step) { steps.Add(step); }

  // A long loop that fills or empties slots is shortened, and nested loops from the outermost on, so that roles with
  // the same loops list the same slots.
  void WriteLoop(const Op& op, int64_t listed, StepList& steps) {
    const int64_t iterations = indices_.Iterations(op), listed_iterations = ListedIterations(op, listed);
    if (listed_iterations == 0) return;
    const double products = products_;
    const size_t first = steps.size();
    WriteAll(op.body, std::max<int64_t>(1, listed / listed_iterations), steps);
    steps.Repeat(first, listed_iterations - 1);
    products_ = products + (products_ - products) * static_cast<double>(iterations);
  }

  // Iterations of a loop that are listed.
  int64_t ListedIterations(const Op& op, int64_t listed) {
    const int64_t iterations = indices_.Iterations(op);
    if (!MovesSlots(op.body)) return iterations;
    const int64_t inner = std::max<int64_t>(1, InnerIterations(op.body)) * op.As<ir::ForAttrs>().step;
    // What comes before the first of its slots is listed elsewhere.
    const int64_t before = std::min(indices_.At(op.operands[0]) / inner, listed - 1);
    return std::min(iterations, std::max<int64_t>(1, listed / std::min(inner, listed) - before));
  }

  static bool MovesSlots(const std::vector<Op>& body) {
    return std::any_of(body.begin(), body.end(), [](const Op& op) {
      return op.kind == OpKind::kPut || op.kind == OpKind::kTake || (op.kind == OpKind::kFor && MovesSlots(op.body));
    });
  }
  // Iterations of the inner loops per iteration of this body.
  int64_t InnerIterations(const std::vector<Op>& body) {
    int64_t iterations = 1;
    for (const Op& op : body) {
      indices_.Note(op);
      if (op.kind != OpKind::kFor || !MovesSlots(op.body) || !indices_.KnowsIterations(op)) continue;
      iterations = std::max(iterations, indices_.Iterations(op) * InnerIterations(op.body));
    }
    return iterations;
  }

  void NoteSlot(const Op& op) {
    if (op.result == ir::kNoValue) return;
    if (const auto* channel = std::get_if<ir::ChannelAttrs>(&op.attrs)) slots_.at(op.result) = channel->channel;
  }
  int RingOf(const Op& op) const { return slots_.at(op.operands[0]); }
  bool IsOrder(const Op& op) const {
    return program_.channels[static_cast<size_t>(RingOf(op))].space == ir::Space::kOrder;
  }
  const SharedLayout& Tile(const Op& op, size_t operand, int tile) const {
    const ir::Channel& channel = program_.channels[static_cast<size_t>(slots_.at(op.operands[operand]))];
    return channel.tiles[static_cast<size_t>(tile)].layout;
  }
  const ir::Buffer& BufferOf(int buffer) const { return program_.buffers[static_cast<size_t>(buffer)]; }

  // `bytes` are loaded to the SM, by `parts` of them in rotation for all.
  static Step Load(const SharedLayout& tile, int bytes, bool of_b, int parts) {
    return {.kind = StepKind::kLoad,
            .bytes = static_cast<double>(bytes),
            .of_b = of_b,
            .row_bytes = static_cast<double>(tile.Span()),
            .along_k = tile.KMajor(),
            .sharers = static_cast<double>(parts),
            .issues = static_cast<double>(tile.Boxes())};
  }

  Step Gather(const Op& op) const {
    const auto& attrs = op.As<ir::GatherAttrs>();
    const SharedLayout& tile = Tile(op, 0, attrs.tile);
    double columns = tile.inner;
    // Code specialised for the taps loads nothing after the last one.
    if (attrs.channels > 0) {
      columns = std::clamp(attrs.channels * attrs.columns * attrs.rows * attrs.planes - attrs.first, 0, tile.inner);
    }
    return {.kind = StepKind::kGather,
            .bytes = static_cast<double>(tile.Bytes()),
            .accesses = tile.outer * columns / attrs.vector,
            .gather = attrs.channels > 0 ? GatherKind::kKnown : GatherKind::kPixels};
  }

  double Depth() const { return static_cast<double>(program_.tile_k) / program_.Depth(); }

  void Multiply(StepList& steps, Step product) {
    product.kind = StepKind::kMma;
    product.columns = program_.Columns();
    if (product.depth == 0) product.depth = Depth();
    product.step_bytes = program_.StepBytes();
    product.b_share = static_cast<double>(program_.Compression(ir::Operand::kA)) / program_.ctas;
    product.pair = program_.ctas > 1;
    product.full_rate = program_.Rows() >= target_.mma.full_rate_rows;
    products_ += 1;
    steps.Add(product);
  }

  // Elements of a panel of the role's warps together.
  void Evaluate(StepList& steps, ir::Function function, bool approximate) {
    const FunctionCost cost = CostOf(function);
    Add(steps, {.kind = StepKind::kConvert,
                .elements = Elements(),
                .operations = approximate ? cost.approximate_operations : cost.operations,
                .special = approximate ? cost.approximate_special : cost.special});
  }
  double Elements() const { return static_cast<double>(rows_) * columns_; }
  // As long as the compiled function; before compilation a typical length.
  FunctionLength LengthOf(const ir::ProgramFunction& function) const {
    constexpr FunctionLength kUnknown = {24, 1};
    const Epilogue& epilogue = ir::EpilogueOf(problem_);
    for (const EpilogueStep& step : epilogue) {
      if (!step.function || step.function->digest != function.digest) continue;
      if (step.function->length.operations > 0) return step.function->length;
    }
    return kUnknown;
  }
  void Call(StepList& steps, const ir::CallAttrs& attrs) {
    double read = 0, written = 0;
    const ir::ProgramFunction& function = program_.functions[static_cast<size_t>(attrs.function)];
    if (function.is_gated) columns_ /= 2;
    for (const ir::FunctionInput& input : function.inputs) {
      const auto bytes = static_cast<double>(DataTypeBytes(input.type));
      if (input.kind == FunctionOperand::kPerElement) read += bytes;
      if (input.kind == FunctionOperand::kOutput) written += bytes;
    }
    if (read > 0) Add(steps, {.kind = StepKind::kReadGlobal, .bytes = Elements() * read});
    const FunctionLength length = LengthOf(function);
    Add(steps, {.kind = StepKind::kConvert,
                .elements = Elements(),
                .operations = static_cast<double>(length.operations),
                .special = static_cast<double>(length.special)});
    if (written > 0)
      Add(steps, {.kind = StepKind::kStoreThreads,
                  .bytes = Elements() * written,
                  .row_bytes = attrs.vector * written,
                  .elements = Elements()});
  }
  void ReadAccumulator(StepList& steps, int columns) {
    columns_ = columns;
    steps.Add({.kind = StepKind::kReadAccumulator, .bytes = Elements() * kSumBytes});
  }

  const Problem& problem_;
  const compiler::ProblemNumbers& numbers_;
  const ir::Program& program_;
  const target::Target& target_;
  const ir::Role& role_;
  PipelineRole steps_;
  compiler::ConstantIndices indices_;
  std::vector<int> slots_;  // the channel of each value that is a slot
  const WrittenPart part_;
  double products_ = 0;
  // That the role's ops treat at once: of several blocks of rows those of one.
  int rows_ = program_.Rows() / (Has<ir::MmaAttrs>(role_.body) ? program_.Blocks(role_) : 1);
  int columns_ = 0;
  double staged_bytes_ = 0;  // since the last store
};

}  // namespace

WrittenRole WriteRole(const Problem& problem, const compiler::ProblemNumbers& numbers, const ir::Program& program,
                      const target::Target& target, const ir::Role& role, const WrittenPart& part) {
  StepWriter writer(problem, numbers, program, target, role, part);
  PipelineRole written = writer.Write();
  return {std::move(written), writer.products()};
}

}  // namespace laneshift::autotune
