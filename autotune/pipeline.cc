#include "autotune/pipeline.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "compiler/bindings.h"
#include "compiler/conv_geometry.h"
#include "compiler/mma_shape.h"

namespace laneshift::autotune {
namespace {

using ir::Op;
using ir::OpKind;
using ir::SharedLayout;
using ir::ValueId;
using target::Feature;

// Iterations of the loops over K that are listed; more than any ring holds, twice.
constexpr int64_t kListedIterations = 48;
constexpr int kWgmmaRows = 64;
constexpr int kLanes = 128;
constexpr double kSumBytes = 4;
constexpr double kQuadBytes = ir::WorkspaceLayout::kQuadBytes;

// Instructions of one element, and those of them that the special function units execute, as compiler/emit_function.cc
// writes a function: exactly, and to the precision of 16 bits.
struct FunctionCost {
  double operations, special, approximate_operations, approximate_special;
};
FunctionCost CostOf(ir::Function function) {
  switch (function) {
    case ir::Function::kIdentity:
      return {0, 0, 0, 0};
    case ir::Function::kRelu:
    case ir::Function::kRint:
    case ir::Function::kCutBf16:
      return {1, 0, 1, 0};
    case ir::Function::kLeakyRelu:
    case ir::Function::kClamp:
    case ir::Function::kCutF16:
      return {2, 0, 2, 0};
    case ir::Function::kGelu:
      return {16, 2, 7, 1};
    case ir::Function::kGeluTanh:
      return {8, 2, 5, 1};
    case ir::Function::kSilu:
      return {5, 2, 2, 1};
    case ir::Function::kSigmoid:
      return {4, 2, 3, 1};
    case ir::Function::kTanh:
      return {5, 2, 1, 1};
  }
  LS_CHECK(false, "unknown function ", static_cast<int>(function));
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One role of a program as steps.
class StepWriter {
 public:
  StepWriter(const Problem& problem, const Schedule& schedule, const ir::Program& program, const target::Target& target,
             const ir::Role& role)
      : problem_(problem), schedule_(schedule), program_(program), target_(target), role_(role) {}

  PipelineRole Write() {
    bool behind = false;
    for (const Op& op : role_.body) {
      if (op.kind == OpKind::kShares) CutSections(op);
      if (const auto* tiles = std::get_if<ir::TilesAttrs>(&op.attrs)) {
        steps_.turn = tiles->turn;
        steps_.turns = tiles->turns;
      }
      if (op.kind == OpKind::kTiles || op.kind == OpKind::kShares) {
        WriteAll(op.body, kListedIterations, steps_.tile);
        behind = true;
      } else {
        WriteOp(op, kListedIterations, behind ? steps_.after : steps_.before);
      }
    }
    return std::move(steps_);
  }

  // Products of one tile, and those that are listed.
  double products() const { return products_; }
  // Parts into which each tile is cut.
  int64_t sections() const { return sections_; }

 private:
  // Tiles that fill no round are all there are, or are taken for a round of whole ones.
  void CutSections(const Op& op) {
    const int64_t blocks = indices_.at(op.operands[3]);
    int64_t tiles = 1;
    for (size_t i = 0; i < 3; ++i) tiles *= indices_.at(op.operands[i]);
    if (tiles < target_.default_sm_count) sections_ = std::min<int64_t>(op.As<ir::SharesAttrs>().sections, blocks);
    indices_[op.result + 3] = 0;
    indices_[op.result + 4] = CeilDiv(blocks, sections_);
  }

  void WriteAll(const std::vector<Op>& body, int64_t listed, std::vector<Step>& steps) {
    for (const Op& op : body) WriteOp(op, listed, steps);
  }

  void WriteOp(const Op& op, int64_t listed, std::vector<Step>& steps) {
    NoteIndex(op);
    NoteSlot(op);
    switch (op.kind) {
      case OpKind::kFor:
        return WriteLoop(op, listed, steps);
      case OpKind::kIf:
        return WriteAll(op.body, listed, steps);
      case OpKind::kPut:
      case OpKind::kReserve:
        return Add(steps, {.kind = StepKind::kPut, .ring = op.As<ir::ChannelAttrs>().channel});
      case OpKind::kTake:
        return Add(steps, {.kind = StepKind::kTake, .ring = op.As<ir::ChannelAttrs>().channel});
      case OpKind::kSend:
        return Add(steps, {.kind = StepKind::kSend, .ring = RingOf(op), .at_once = IsTurn(op)});
      case OpKind::kRelease:
      case OpKind::kRetire:
        if (IsTurn(op)) return Add(steps, {.kind = StepKind::kRelease, .ring = RingOf(op), .at_once = true});
        // Products into registers are waited for.
        if (role_.kind == ir::RoleKind::kMath) return Add(steps, {.kind = StepKind::kDrain, .ring = RingOf(op)});
        return Add(steps, {.kind = StepKind::kRelease, .ring = RingOf(op)});
      case OpKind::kReleaseLate:
        return Add(steps, {.kind = StepKind::kReleaseLate, .ring = RingOf(op), .lag = op.As<ir::ReleaseAttrs>().lag});
      case OpKind::kDrain: {
        const auto& drain = op.As<ir::DrainAttrs>();
        return Add(steps, {.kind = StepKind::kDrain, .ring = drain.channel, .lag = drain.lag});
      }
      case OpKind::kTmaLoad: {
        const auto& attrs = op.As<ir::LoadAttrs>();
        const SharedLayout& tile = Tile(op, 0, attrs.tile);
        return Add(steps, Load(tile, tile.Bytes(), attrs.operand == ir::Operand::kB, program_.Parts(attrs.to)));
      }
      case OpKind::kLoadPixels: {
        const auto& attrs = op.As<ir::PixelLoadAttrs>();
        const SharedLayout& tile = Tile(op, 0, attrs.tile);
        const int parts = program_.Parts(attrs.to);
        return Add(steps, Load(tile, ir::BoxBytes(tile, program_.FindParam(attrs.map)->box) * parts, false, parts));
      }
      case OpKind::kCopyLoad: {
        const auto& attrs = op.As<ir::LoadAttrs>();
        const SharedLayout& tile = Tile(op, 0, attrs.tile);
        return Add(steps, {.kind = StepKind::kGather,
                           .bytes = static_cast<double>(tile.Bytes()),
                           .of_b = attrs.operand == ir::Operand::kB,
                           .accesses = static_cast<double>(tile.Bytes()) / tile.ElementBytes()});
      }
      case OpKind::kGatherPixels:
        return Add(steps, Gather(op));
      case OpKind::kMma:
        return Multiply(steps, {.rows = static_cast<double>(program_.Rows()), .tensor_memory = true});
      case OpKind::kMmaTensor:
        Multiply(steps, {.rows = static_cast<double>(program_.tile_m), .a_shared = false, .tensor_memory = true});
        if (op.As<ir::MmaTensorAttrs>().shift != 0) Add(steps, {.kind = StepKind::kTensorMove, .issues = Depth()});
        return;
      case OpKind::kMmaRegisters:
        return Multiply(steps, {.rows = kWgmmaRows, .units = static_cast<double>(program_.Rows()) / kWgmmaRows});
      case OpKind::kTensorCopy:
        return Add(steps,
                   {.kind = StepKind::kTensorCopy, .bytes = Depth() * program_.tile_m * kStepBytes, .issues = Depth()});
      case OpKind::kTensorRefresh:
        return Add(
            steps,
            {.kind = StepKind::kTensorMove, .bytes = Depth() * ir::kRefreshedRows * kStepBytes, .issues = Depth()});
      case OpKind::kTensorShift:
        return Add(steps, {.kind = StepKind::kTensorMove, .issues = Depth() * op.As<ir::TensorShiftAttrs>().issues});
      case OpKind::kAccRead:
        return ReadSums(steps, op.As<ir::AccReadAttrs>().columns);
      case OpKind::kAccRegisters:
        columns_ = op.As<ir::AccRegistersAttrs>().columns;
        return;
      case OpKind::kReadSums:
        columns_ = op.As<ir::ReadSumsAttrs>().columns;
        return;
      case OpKind::kAddSums:
      case OpKind::kAddScaledSums:
        return Add(steps, {.kind = StepKind::kStage, .elements = Elements()});
      case OpKind::kScale:
      case OpKind::kScaleBy:
        return Add(steps, {.kind = StepKind::kConvert, .elements = Elements()});
      case OpKind::kMap:
        return Evaluate(steps, op.As<ir::MapAttrs>().function, op.As<ir::MapAttrs>().approximate != 0);
      case OpKind::kGate:
        columns_ /= 2;
        return Evaluate(steps, op.As<ir::GateAttrs>().function, op.As<ir::GateAttrs>().approximate != 0);
      case OpKind::kReduce:
      case OpKind::kCombineVector:
        return Add(steps, {.kind = StepKind::kConvert, .elements = Elements(), .operations = 1});
      case OpKind::kCombineMatrix: {
        const auto& attrs = op.As<ir::CombineMatrixAttrs>();
        Add(steps,
            {.kind = StepKind::kReadGlobal, .bytes = Elements() * static_cast<double>(DataTypeBytes(attrs.type))});
        if (attrs.derivative != ir::Function::kIdentity) Evaluate(steps, attrs.derivative, false);
        return;
      }
      case OpKind::kStageStore: {
        const auto& out = BufferOf(op.As<ir::StageAttrs>().buffer).layout;
        return Add(steps, {.kind = StepKind::kStage, .bytes = Elements() * out.ElementBytes(), .elements = Elements()});
      }
      case OpKind::kTmaStore:
      case OpKind::kStorePixels: {
        const auto& out = BufferOf(op.As<ir::StageAttrs>().buffer).layout;
        return Add(steps, {.kind = StepKind::kStore,
                           .bytes = Elements() * out.ElementBytes(),
                           .row_bytes = static_cast<double>(out.Span())});
      }
      case OpKind::kBulkWait:
        return Add(steps, {.kind = StepKind::kStoreWait, .lag = op.As<ir::PendingAttrs>().pending});
      case OpKind::kStoreRows: {
        const auto& out = BufferOf(op.As<ir::StoreRowsAttrs>().buffer).layout;
        return Add(steps, {.kind = StepKind::kStoreThreads,
                           .bytes = Elements() * out.ElementBytes(),
                           .row_bytes = static_cast<double>(out.Span())});
      }
      case OpKind::kGlobalStore: {
        const auto& attrs = op.As<ir::GlobalAttrs>();
        const double element = static_cast<double>(DataTypeBytes(attrs.type));
        return Add(steps, {.kind = StepKind::kStoreThreads,
                           .bytes = Elements() * element,
                           .row_bytes = attrs.vector * element,
                           .elements = Elements()});
      }
      case OpKind::kPartialStore:
        if (sections_ == 1) return;
        return Add(steps, {.kind = StepKind::kStoreThreads, .bytes = Elements() * kSumBytes, .row_bytes = kQuadBytes});
      case OpKind::kPartialArrive:
        // The stores are waited for, then the counter answers.
        for (int i = 0; i < 2 && sections_ > 1; ++i) Add(steps, {.kind = StepKind::kReadGlobal, .bytes = kSumBytes});
        return;
      case OpKind::kPartialSum:
        if (sections_ == 1) return;
        return Add(steps,
                   {.kind = StepKind::kReadGlobal, .bytes = Elements() * kSumBytes * static_cast<double>(sections_)});
      // What follows takes no time of its own. Listed, so that a new op is thought about.
      // The slots of the other roles' tiles are passed by the simulation.
      case OpKind::kPass:
      case OpKind::kConst:
      case OpKind::kParam:
      case OpKind::kClusterIndex:
      case OpKind::kTilesNext:
      case OpKind::kRequest:
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMul:
      case OpKind::kCeilDiv:
      case OpKind::kDiv:
      case OpKind::kRem:
      case OpKind::kLess:
      case OpKind::kLanesBeside:
      case OpKind::kLoadFactor:
      case OpKind::kLoadFactors:
      case OpKind::kClearSums:
      case OpKind::kTiles:
      case OpKind::kShares:
      case OpKind::kWarpRow:
        return;
      // Of lowered programs, which this is not.
      case OpKind::kCursor:
      case OpKind::kAdvance:
      case OpKind::kAdvanceBy:
      case OpKind::kBarrierWait:
      case OpKind::kBarrierExpect:
      case OpKind::kBarrierArrive:
      case OpKind::kMmaCommit:
      case OpKind::kMmaWait:
      case OpKind::kFenceProxy:
      case OpKind::kFenceTensor:
        LS_CHECK(false, "a pipeline is made of a scheduled program");
    }
  }

  static void Add(std::vector<Step>& steps, Step step) { steps.push_back(step); }

  // A loop that fills or empties slots is cut where it is long, a nest of them from the outermost on; so that roles
  // with the same loops list the same slots.
  void WriteLoop(const Op& op, int64_t listed, std::vector<Step>& steps) {
    const auto first = indices_.find(op.operands[0]);
    const auto last = indices_.find(op.operands[1]);
    LS_CHECK(first != indices_.end() && last != indices_.end(), "a loop whose length varies from turn to turn");
    const int64_t turns = std::max<int64_t>(0, CeilDiv(last->second - first->second, op.As<ir::ForAttrs>().step));
    const int64_t inner = MovesSlots(op.body) ? std::max<int64_t>(1, InnerTurns(op.body)) : 0;
    const int64_t kept = inner == 0 ? turns : std::min(turns, std::max<int64_t>(1, listed / std::min(inner, listed)));
    const double products = products_;
    for (int64_t turn = 0; turn < kept; ++turn) WriteAll(op.body, std::max<int64_t>(1, listed / kept), steps);
    if (kept > 0)
      products_ = products + (products_ - products) * static_cast<double>(turns) / static_cast<double>(kept);
  }

  static bool MovesSlots(const std::vector<Op>& body) {
    return std::any_of(body.begin(), body.end(), [](const Op& op) {
      return op.kind == OpKind::kPut || op.kind == OpKind::kTake || (op.kind == OpKind::kFor && MovesSlots(op.body));
    });
  }
  // Turns of the loops that a turn of this body goes through.
  int64_t InnerTurns(const std::vector<Op>& body) {
    int64_t turns = 1;
    for (const Op& op : body) {
      NoteIndex(op);
      if (op.kind != OpKind::kFor || !MovesSlots(op.body)) continue;
      const auto first = indices_.find(op.operands[0]);
      const auto last = indices_.find(op.operands[1]);
      if (first == indices_.end() || last == indices_.end()) continue;
      turns = std::max(turns, (last->second - first->second) * InnerTurns(op.body));
    }
    return turns;
  }

  // Values that are the same in every turn of every loop; the others have none.
  void NoteIndex(const Op& op) {
    if (op.kind == OpKind::kConst) indices_[op.result] = op.As<ir::ConstAttrs>().value;
    if (op.kind == OpKind::kParam) {
      indices_[op.result] =
          static_cast<int64_t>(compiler::NumberOf(problem_, schedule_, op.As<ir::ParamAttrs>().binding));
    }
    if (op.operands.size() != 2) return;
    const auto a = indices_.find(op.operands[0]);
    const auto b = indices_.find(op.operands[1]);
    if (a == indices_.end() || b == indices_.end()) return;
    if (op.kind == OpKind::kAdd) indices_[op.result] = a->second + b->second;
    if (op.kind == OpKind::kSub) indices_[op.result] = a->second - b->second;
    if (op.kind == OpKind::kMul) indices_[op.result] = a->second * b->second;
    if (op.kind == OpKind::kCeilDiv) indices_[op.result] = CeilDiv(a->second, b->second);
  }

  void NoteSlot(const Op& op) {
    if (op.result == ir::kNoValue) return;
    if (const auto* channel = std::get_if<ir::ChannelAttrs>(&op.attrs)) slots_[op.result] = channel->channel;
  }
  int RingOf(const Op& op) const { return slots_.at(op.operands[0]); }
  bool IsTurn(const Op& op) const {
    return program_.channels[static_cast<size_t>(RingOf(op))].space == ir::Space::kTurns;
  }
  const SharedLayout& Tile(const Op& op, size_t operand, int tile) const {
    const ir::Channel& channel = program_.channels[static_cast<size_t>(slots_.at(op.operands[operand]))];
    return channel.tiles[static_cast<size_t>(tile)].layout;
  }
  const ir::Buffer& BufferOf(int buffer) const { return program_.buffers[static_cast<size_t>(buffer)]; }

  // `bytes` come to the SM, brought by `parts` of them in turn for all.
  static Step Load(const SharedLayout& tile, int bytes, bool of_b, int parts) {
    return {.kind = StepKind::kLoad,
            .bytes = static_cast<double>(bytes),
            .of_b = of_b,
            .row_bytes = static_cast<double>(tile.Span()),
            .sharers = static_cast<double>(parts),
            .issues = static_cast<double>(tile.Columns())};
  }

  Step Gather(const Op& op) const {
    const auto& attrs = op.As<ir::GatherAttrs>();
    const SharedLayout& tile = Tile(op, 0, attrs.tile);
    double columns = tile.inner;
    // Code made for the taps loads nothing behind the last one.
    if (attrs.channels > 0) {
      columns = std::clamp(attrs.channels * attrs.columns * attrs.rows * attrs.planes - attrs.first, 0, tile.inner);
    }
    return {.kind = StepKind::kGather,
            .bytes = static_cast<double>(tile.Bytes()),
            .accesses = tile.outer * columns / attrs.vector,
            .gather = attrs.channels > 0 ? GatherKind::kKnown : GatherKind::kPixels};
  }

  double Depth() const { return static_cast<double>(program_.tile_k) / compiler::MmaK(program_.operand_type); }

  void Multiply(std::vector<Step>& steps, Step product) {
    product.kind = StepKind::kProduct;
    product.columns = program_.Columns();
    product.depth = Depth();
    product.b_share = 1.0 / program_.ctas;
    product.pair = program_.ctas > 1;
    product.full_rate = !product.tensor_memory || program_.Rows() >= kLanes;
    products_ += 1;
    steps.push_back(product);
  }

  // Elements of a panel of the role's warps together.
  void Evaluate(std::vector<Step>& steps, ir::Function function, bool approximate) {
    const FunctionCost cost = CostOf(function);
    Add(steps, {.kind = StepKind::kConvert,
                .elements = Elements(),
                .operations = approximate ? cost.approximate_operations : cost.operations,
                .special = approximate ? cost.approximate_special : cost.special});
  }
  double Elements() const { return static_cast<double>(program_.Rows()) * columns_; }
  void ReadSums(std::vector<Step>& steps, int columns) {
    columns_ = columns;
    steps.push_back({.kind = StepKind::kReadSums, .bytes = Elements() * kSumBytes});
  }

  static constexpr double kStepBytes = 32;

  const Problem& problem_;
  const Schedule& schedule_;
  const ir::Program& program_;
  const target::Target& target_;
  const ir::Role& role_;
  PipelineRole steps_;
  std::map<ValueId, int64_t> indices_;
  std::map<ValueId, int> slots_;
  double products_ = 0;
  int64_t sections_ = 1;
  int columns_ = 0;
};

double Counted(const PipelineRole& role, StepKind kind) {
  return static_cast<double>(
      std::count_if(role.tile.begin(), role.tile.end(), [&](const Step& s) { return s.kind == kind; }));
}

void CountUsers(Pipeline& pipeline) {
  for (size_t ring = 0; ring < pipeline.rings.size(); ++ring) {
    for (const PipelineRole& role : pipeline.roles) {
      // Of roles that take turns at tiles one has the slots of each.
      const bool later = role.turn > 0 && !pipeline.rings[ring].turns;
      const auto uses = [&](StepKind kind) {
        for (const auto* steps : {&role.before, &role.tile, &role.after}) {
          if (later && steps == &role.tile) continue;
          for (const Step& step : *steps) {
            if (step.kind == kind && step.ring == static_cast<int>(ring)) return true;
          }
        }
        return false;
      };
      pipeline.rings[ring].producers += uses(StepKind::kSend) ? 1 : 0;
      pipeline.rings[ring].consumers +=
          uses(StepKind::kRelease) || uses(StepKind::kReleaseLate) || uses(StepKind::kDrain) ? 1 : 0;
    }
  }
}

// The rows of bulk copies that lie outside, on average over the tiles.
void CountOutside(Pipeline& pipeline, double outside_a, double outside_b) {
  for (PipelineRole& role : pipeline.roles) {
    for (Step& step : role.tile) {
      if (step.kind == StepKind::kLoad)
        step.outside = step.bytes / step.row_bytes * (step.of_b ? outside_b : outside_a);
    }
  }
}

// The bytes that one tile brings of each operand, the turns that are not listed included.
void CountReads(Pipeline& pipeline) {
  const double scale = pipeline.products / std::max(1.0, pipeline.counted);
  for (const PipelineRole& role : pipeline.roles) {
    for (const Step& step : role.tile) {
      if (step.kind != StepKind::kLoad && step.kind != StepKind::kGather) continue;
      (step.of_b ? pipeline.b : pipeline.a).tile_bytes += step.bytes / step.sharers * scale;
    }
  }
}

double Bytes(DataType type) { return static_cast<double>(DataTypeBytes(type)); }

// The bytes of each operand that exist, and that are stored.
void CountMemory(const GemmProblem& p, Pipeline& pipeline) {
  const auto batch = static_cast<double>(p.batch);
  pipeline.a.unique_bytes = static_cast<double>(p.m) * static_cast<double>(p.k) * batch * Bytes(p.a);
  pipeline.b.unique_bytes = static_cast<double>(p.n) * static_cast<double>(p.k) * batch * Bytes(p.b);
  pipeline.stored_bytes = static_cast<double>(p.m) * static_cast<double>(p.n) * batch * Bytes(p.d);
}
void CountMemory(const ConvProblem& p, Pipeline& pipeline) {
  const auto volume = [](const Spatial& s) { return static_cast<double>(s[0] * s[1] * s[2]); };
  const auto images = static_cast<double>(p.n);
  pipeline.a.unique_bytes = images * volume(p.input) * static_cast<double>(p.c) * Bytes(p.x);
  pipeline.b.unique_bytes = static_cast<double>(p.k * p.c / p.groups) * volume(p.filter) * Bytes(p.w);
  pipeline.stored_bytes = images * volume(p.Output()) * static_cast<double>(p.k) * Bytes(p.y);
}

}  // namespace

Pipeline PipelineOf(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                    const target::Target& target) {
  Pipeline pipeline;
  int64_t sections = 1;
  for (const ir::Channel& channel : program.channels) {
    pipeline.rings.push_back({.stages = channel.stages, .turns = channel.space == ir::Space::kTurns});
  }
  for (const ir::Role& role : program.roles) {
    StepWriter writer(problem, schedule, program, target, role);
    pipeline.roles.push_back(writer.Write());
    const PipelineRole& written = pipeline.roles.back();
    sections = std::max(sections, writer.sections());
    if (writer.products() > 0) {
      pipeline.products = writer.products();
      pipeline.counted = Counted(written, StepKind::kProduct);
    }
  }
  CountUsers(pipeline);
  CountReads(pipeline);
  const auto size = [&](ir::Binding binding) {
    return static_cast<int64_t>(compiler::NumberOf(problem, schedule, binding));
  };
  pipeline.tile_rows = static_cast<double>(CeilDiv(size(ir::Binding::kM), program.TileRows()));
  pipeline.tile_columns = static_cast<double>(CeilDiv(size(ir::Binding::kN), program.tile_n));
  pipeline.tiles =
      pipeline.tile_rows * pipeline.tile_columns * static_cast<double>(size(ir::Binding::kBatch) * sections);
  pipeline.raster = schedule.raster;
  const auto outside = [](int64_t extent, double tiles, int tile) {
    return 1 - static_cast<double>(extent) / (tiles * tile);
  };
  CountOutside(pipeline, outside(size(ir::Binding::kM), pipeline.tile_rows, program.TileRows()),
               outside(size(ir::Binding::kN), pipeline.tile_columns, program.tile_n));
  std::visit([&](const auto& kind) { CountMemory(kind, pipeline); }, problem);
  return pipeline;
}

}  // namespace laneshift::autotune
