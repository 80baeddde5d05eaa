#include "compiler/build/kernel_builder.h"

#include <algorithm>
#include <utility>

#include "compiler/compile.h"
#include "compiler/passes.h"
#include "ir/element_type.h"

namespace laneshift::compiler {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::RoleKind;
using ir::SharedLayout;
using ir::ValueId;

namespace {

// Warps of a CTA. Warp 0 issues bulk copies and warp 1 MMAs, warp 3 the bulk copies of what stays; the warps left in
// the first warpgroup copy what the TMA cannot reach; the epilogue, which must start at a multiple of four warps to own
// its lanes of Tensor Memory or to form warpgroups, comes behind.
constexpr int kLoadWarp = 0;
constexpr int kMmaWarp = 1;
constexpr int kScheduleWarp = 2;
constexpr int kKeepWarp = 3;
constexpr int kEpilogueWarp = 4;

// For two math warpgroups beside the loading one: together at most what the CTA is launched with, 3 x 168.
constexpr RegisterSplit kTmaOnly = {40, 232};
constexpr RegisterSplit kWithCopies = {88, 208};
constexpr RegisterSplit kWithUnrolledGather = {104, 200};
constexpr RegisterSplit kNarrowWithCopies = {168, 152};  // for accumulators of at most kNarrow columns, and one block
constexpr int kNarrow = 128;
constexpr int kWidestPanel = 64;  // columns

// Answers under way: with two, a request for the tile behind the next one is out while the epilogue has the current
// one.
constexpr int kGrants = 2;

// Slots whose release waits for the products issued on them while the next ones are issued.
constexpr int kReleaseLag = 1;
constexpr int kAddresses = 24;  // registers of a thread beside those of sums and operands

}  // namespace

KernelBuilder::KernelBuilder(std::string name, const Schedule& schedule, const target::Target& target,
                             DataType operand_type, EpilogueTerms terms)
    : schedule_(schedule),
      target_(target),
      in_tensor_memory_(target.mma.accumulators == target::AccumulatorSpace::kTensorMemory),
      terms_(std::move(terms)) {
  program_.name = std::move(name);
  program_.target = target.name;
  program_.tile_m = schedule.tile_m;
  program_.tile_n = schedule.tile_n;
  program_.tile_k = schedule.tile_k;
  program_.row_axis = schedule.rows == RowSide::kM ? Axis::kM : Axis::kN;
  program_.cluster_m = schedule.cluster_m;
  program_.cluster_n = schedule.cluster_n;
  program_.ctas = schedule.ctas;
  program_.operand_type = operand_type;
}

ir::Program KernelBuilder::Build() {
  program_.kept_rows = KeptRows();
  AddOperands();
  for (size_t i = 0; i < program_.channels.size(); ++i) {
    const ir::Channel& channel = program_.channels[i];
    if (channel.stays) {
      kept_ = static_cast<int>(i);
    } else if (channel.space == ir::Space::kShared) {
      operand_channels_.push_back(static_cast<int>(i));
    }
  }
  if (in_tensor_memory_) {
    accumulators_ = AddChannel({.name = "acc",
                                .space = ir::Space::kTensor,
                                .stages = schedule_.acc_stages,
                                .rows = program_.Rows(),
                                .columns = program_.Columns()});
  }
  if (schedule_.scheduler == Scheduler::kClc)
    grants_ = AddChannel({.name = "grants", .space = ir::Space::kGrants, .stages = kGrants});
  if (Turns() > 1) turns_ = AddChannel({.name = "turns", .space = ir::Space::kTurns, .stages = 1});
  tiles_ = {.tile_m = program_.TileRows(),
            .tile_n = schedule_.tile_n,
            .raster = schedule_.raster,
            .sections = schedule_.split_k,
            .turns = Turns(),
            .grants = grants_,
            .blocks = [this](Builder& b) { return BlocksOfTile(b); }};
  PlanEpilogue();
  AddOutputs();
  if (SharesTiles()) AddParam(Binding::kWorkspace);
  AddLoadRole(LoadPath::kTma);
  if (KeepsApart()) AddKeepRole();
  if (in_tensor_memory_) AddMmaRole();
  if (grants_ >= 0) AddScheduleRole();
  AddLoadRole(LoadPath::kCopy);
  for (int turn = 0; turn < Turns(); ++turn) AddEpilogueRole(turn);
  program_.threads = 32 * (kEpilogueWarp + Turns() * EpilogueWarps());
  return std::move(program_);
}

int KernelBuilder::AddChannel(ir::Channel channel) {
  program_.channels.push_back(std::move(channel));
  return static_cast<int>(program_.channels.size()) - 1;
}

ValueId KernelBuilder::KeptSlot(Builder& b, ValueId number) const { return b.Kept({number}, {.channel = kept_}); }

// In higher bands there is one column of tiles.
ValueId KernelBuilder::KeptColumn(Builder& b) const {
  if (schedule_.raster > 1) return ColumnOfB(b, b.Constant(0));
  const ValueId tile_n = b.Constant(schedule_.tile_n);
  const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), tile_n});
  return ColumnOfB(b, b.Mul({b.TilesColumn({columns}), tile_n}));
}

void KernelBuilder::AwaitKept(Builder& b) const {
  if (kept_ >= 0) b.Await({KeptSlots(b)}, {.channel = kept_});
}

bool KernelBuilder::KeepsBy(LoadPath path) const {
  return (Stays(Operand::kA) && schedule_.a_load == path) || (Stays(Operand::kB) && schedule_.b_load == path);
}
bool KernelBuilder::StreamsBy(LoadPath path) const {
  return (!Stays(Operand::kA) && schedule_.a_load == path) || (!Stays(Operand::kB) && schedule_.b_load == path);
}

ValueId KernelBuilder::PartStart(Builder& b, ValueId first, Operand operand, int rows) const {
  if (PartsOf(operand) == 1) return first;
  const bool along_n = LineOf(operand) == ir::Reach::kN;
  ValueId part = b.ClusterIndex({}, {.axis = along_n ? Axis::kN : Axis::kM});
  if (!along_n && schedule_.ctas > 1) part = b.Div({part, b.Constant(schedule_.ctas)});
  if (operand == Operand::kB && JoinsHalves()) rows /= 2;
  return b.Add({first, b.Mul({part, b.Constant(rows)})});
}

ValueId KernelBuilder::ColumnOfB(Builder& b, ValueId column) const {
  if (schedule_.ctas > 1) {
    const ValueId half = b.Rem({b.ClusterIndex({}, {.axis = Axis::kM}), b.Constant(schedule_.ctas)});
    column = b.Add({column, b.Mul({half, b.Constant(ColumnsOfB())})});
  }
  return JoinsHalves() ? b.Div({column, b.Constant(2)}) : column;
}

// Columns of the accumulator that the epilogue treats at once: fewer where the registers of the operands of its steps
// would not fit, beside an accumulator that is in registers itself.
int KernelBuilder::WidestPanel() const {
  constexpr int kLeastSpan = 32;
  const int limit = MostRegisters();
  const int held = in_tensor_memory_ ? 0 : AccumulatorColumns() / 2 * (terms_.promotes ? 2 : 1);
  const int joined = JoinedColumns();
  const int least = std::max(16, joined * kLeastSpan / static_cast<int>(DataTypeBytes(terms_.type)));
  int panel = kWidestPanel;
  while (panel > least && held + kAddresses + PanelRegisters(panel) > limit) panel /= 2;
  return panel;
}

// Registers that a lane needs for a panel: of a matrix one for each element, or half of one where elements have 16 bits
// or fewer, and addresses where each is of another row; of a vector one for each row or column that the lane has.
int KernelBuilder::PanelRegisters(int columns) const {
  const ir::FragmentLayout layout{fragment_, columns};
  const int elements = layout.Registers();
  const int across = layout.kind == ir::FragmentKind::kRowPerLane ? 1 : 2;
  const int along = elements / across;
  const auto of_matrix = [&](DataType type) {
    return (type == DataType::kF32 ? elements : elements / 2) + (RowsAlongN() ? 2 * along : 0);
  };
  const int row_vector = RowsAlongN() ? along : across, column_vector = RowsAlongN() ? across : along;
  int registers = elements + (terms_.adds_c ? of_matrix(terms_.c_type) : 0);
  if (terms_.bias != BiasAxis::kNone) registers += terms_.bias == BiasAxis::kM ? row_vector : column_vector;
  for (const EpilogueStep& step : terms_.steps) {
    switch (ir::InfoOf(step.kind).operand) {
      case ir::StepOperand::kMatrix:
      case ir::StepOperand::kOutput:
        registers += of_matrix(ir::OperandTypeOf(step, terms_.type));
        break;
      case ir::StepOperand::kRowVector:
        registers += row_vector;
        break;
      case ir::StepOperand::kRowTotal:
        registers += elements;
        break;
      case ir::StepOperand::kColumnVector:
      case ir::StepOperand::kColumnTotal:
        registers += column_vector;
        break;
      case ir::StepOperand::kNone:
      case ir::StepOperand::kBlocks:
      case ir::StepOperand::kTotal:
      case ir::StepOperand::kTable:
        break;
    }
  }
  return registers;
}

std::vector<ir::Buffer> KernelBuilder::BuffersOf(const Staging& staging) const {
  std::vector<ir::Buffer> buffers;
  for (int turn = 0; turn < Turns() && schedule_.d_store != StorePath::kDirect; ++turn) {
    buffers.push_back({.name = Turns() > 1 ? "out" + std::to_string(turn) : "out",
                       .layout = staging.layout,
                       .copies = staging.copies,
                       .warps = EpilogueWarps(),
                       .sharers = staging.sharers});
  }
  return buffers;
}

// Stages of the ring of operands that shared memory has room for beside the staging.
int KernelBuilder::RingDepth(const Staging& staging) const {
  ir::Program trial;
  trial.channels = program_.channels;
  trial.buffers = BuffersOf(staging);
  ir::Channel& ring = trial.channels[static_cast<size_t>(operand_channels_[0])];
  ring.stages = 1;
  const int spare = target_.smem_bytes - PlaceShared(trial);
  return 1 + std::max(0, spare) / (ring.StageBytes() + 2 * ir::kBarrierBytes);
}

// Decides the fragments in which the accumulator is read, and the staging buffers: the fastest way that costs the ring
// of operands no stage that is of use, whatever its depth is now; of several rings none is cut.
void KernelBuilder::PlanEpilogue() {
  fragment_ = ir::AccumulatorFragment(program_.Rows() / Blocks() / (EpilogueWarps() / 4));
  const std::vector<Staging> stagings = StagingsOf({.type = terms_.type,
                                                    .fragment = fragment_,
                                                    .transposed = RowsAlongN(),
                                                    .columns = program_.Columns(),
                                                    .blocks = Blocks(),
                                                    .joined = JoinedColumns(),
                                                    .joined_rows = ir::IsGated(terms_.steps) ? 2 / JoinedColumns() : 1,
                                                    .widest = WidestPanel(),
                                                    .warps = EpilogueWarps(),
                                                    .in_tensor_memory = in_tensor_memory_,
                                                    .bulk = schedule_.d_store == StorePath::kTma});
  staging_ = stagings.back();
  if (operand_channels_.size() == 1) {
    const int depth = std::min(RingDepth(staging_), std::max(kUsefulStages, schedule_.stages));
    staging_ = *std::find_if(stagings.begin(), stagings.end(),
                             [&](const Staging& staging) { return RingDepth(staging) >= depth; });
  }
  program_.buffers = BuffersOf(staging_);
}

void KernelBuilder::AddMapsOfD() {
  SharedLayout box = staging_.layout;
  AddParam(Binding::kMapD, box);
  const int rest = program_.Columns() % staging_.panel;
  if (RowsAlongN() || rest == 0) return;
  box.inner = rest / JoinedColumns();
  AddParam(Binding::kMapDRest, box);
}

void KernelBuilder::PassTile(Builder& b) const {
  for (const int channel : operand_channels_) tiles_.PassTile(b, channel, SlotsOfBlock(channel));
}

void KernelBuilder::Multiply(Builder& b, ValueId accumulator, ValueId a_slot, ValueId b_slot, ValueId accumulate,
                             ir::MmaAttrs attrs) const {
  if (RowsAlongN()) {
    std::swap(a_slot, b_slot);
    std::swap(attrs.a_tile, attrs.b_tile);
  }
  if (terms_.promotes) accumulate = b.Less({b.Constant(1), b.Constant(0)});
  if (terms_.promotes && in_tensor_memory_) {
    accumulator = b.Put({}, {.channel = accumulators_});
    b.Mma({accumulator, a_slot, b_slot, accumulate}, attrs);
    b.Send({accumulator});
  } else if (in_tensor_memory_) {
    b.Mma({accumulator, a_slot, b_slot, accumulate}, attrs);
  } else {
    b.MmaRegisters({a_slot, b_slot, accumulate}, attrs);
  }
}

void KernelBuilder::ReleaseOperand(Builder& b, ValueId slot, ValueId later) const {
  if (in_tensor_memory_ || terms_.promotes) {
    b.Release({slot});
  } else {
    b.ReleaseLate({slot, later}, {.lag = kReleaseLag});
  }
}

ValueId KernelBuilder::LoadFactors(Builder& b, ValueId block) const {
  if (terms_.scale != Scaling::kBlock || place_.row == ir::kNoValue) return ir::kNoValue;
  const int runs = std::max(1, schedule_.tile_n / static_cast<int>(kScaleRun));
  return b.LoadFactors({place_.row, place_.column, block, place_.batch}, {.fragment = fragment_, .runs = runs});
}

void KernelBuilder::AddToSums(Builder& b, ValueId fragment, int column, ValueId factors) const {
  if (factors == ir::kNoValue) {
    b.AddSums({fragment}, {.column = column});
  } else {
    b.AddScaledSums({fragment, factors}, {.column = column});
  }
}

void KernelBuilder::Promote(Builder& b, ValueId factors) const {
  if (terms_.promotes && !in_tensor_memory_) AddSums(b, factors, 0);
}

void KernelBuilder::AddSums(Builder& b, ValueId factors, int sums) const {
  ForEachColumns([&](int column, int columns) {
    AddToSums(b, b.AccRegisters({}, {.column = column, .columns = columns, .sums = sums}), column, factors);
  });
}

// Two warpgroups that share a tile multiply beside each other's sums anyway, and gain only where these wait for factors
// (measured on an H200).
bool KernelBuilder::AlternatesSums() const {
  const int sums = 3 * AccumulatorColumns() / 2;  // of two accumulators and the tile
  const bool pays = EpilogueWarps() == ir::kWarpgroupWarps || terms_.scale == Scaling::kBlock;
  return terms_.promotes && !in_tensor_memory_ && pays && sums + kAddresses <= MostRegisters();
}

void KernelBuilder::ForEachProduct(Builder& b, const Corner& corner,
                                   const std::function<ValueId(ValueId, int)>& write) const {
  if (!AlternatesSums()) return ForEachBlock(b, corner, [&](ValueId block) { Promote(b, write(block, 0)); });
  const ValueId first = SharesTiles() ? corner.first : b.Constant(0);
  const ValueId end = SharesTiles() ? corner.end : BlocksOfTile(b);
  const ValueId odd = b.Rem({b.Sub({end, first}), b.Constant(2)});
  const ValueId even_end = b.Sub({end, odd});
  const auto drain = [&] {
    for (const int channel : operand_channels_) b.Drain({}, {.channel = channel, .lag = kReleaseLag});
  };
  const ValueId even = b.For({first, even_end}, {.step = 2});
  b.InBody([&] {
    const ValueId factors = write(even, 0);
    const ValueId factors_of_second = write(b.Add({even, b.Constant(1)}), 1);
    AddSums(b, factors, 0);
    drain();
    AddSums(b, factors_of_second, 1);
  });
  const ValueId rest = b.For({even_end, end});
  b.InBody([&] {
    const ValueId factors = write(rest, 0);
    drain();
    AddSums(b, factors, 0);
  });
}

void KernelBuilder::FinishProduct(Builder& b, ValueId slot, ValueId later, int sums) const {
  if (!AlternatesSums()) return ReleaseOperand(b, slot, later);
  // The slot of the first of a pair is free once the products of the second alone run.
  b.ReleaseLate({slot, b.Less({b.Constant(0), b.Constant(sums)})}, {.lag = kReleaseLag});
}

void KernelBuilder::AddFactorParams() {
  if (terms_.scale == Scaling::kNone) return;
  AddParams({Binding::kBaseScaleA, Binding::kBaseScaleB});
  if (DataTypeBytes(terms_.type) == 1) AddParam(Binding::kBaseScaleD);
}

void KernelBuilder::AddRole(ir::Role role, const std::function<void(Builder&)>& write) {
  std::vector<ir::Op> body;
  Builder b(program_, body);
  write(b);
  role.body = std::move(body);
  program_.roles.push_back(std::move(role));
}

int KernelBuilder::MostRegisters() const {
  constexpr int kMost = 255;
  return Registers().math > 0 ? Registers().math : kMost;
}

// Load 0: as launched.
RegisterSplit KernelBuilder::Registers() const {
  if (in_tensor_memory_ || schedule_.math_warpgroups < 2) return {0, 0};
  if (!LoadsBy(LoadPath::kCopy)) return kTmaOnly;
  if (AccumulatorColumns() <= kNarrow && !terms_.promotes) return kNarrowWithCopies;
  return UnrollsGather() ? kWithUnrolledGather : kWithCopies;
}

void KernelBuilder::AddLoadRole(LoadPath path) {
  if (!LoadsBy(path)) return;
  const bool bulk = path == LoadPath::kTma;
  const int first_free_warp = LoadsBy(LoadPath::kTma) ? kLoadWarp + 1 : kLoadWarp;
  const int first_copy_warp = grants_ >= 0 ? kScheduleWarp + 1 : in_tensor_memory_ ? kMmaWarp + 1 : first_free_warp;
  const ir::Role role{.name = bulk ? "load" : "copy",
                      .kind = bulk ? RoleKind::kLoad : RoleKind::kCopy,
                      .first_warp = bulk ? kLoadWarp : first_copy_warp,
                      .warps = bulk ? 1 : kEpilogueWarp - first_copy_warp,
                      .elected = bulk,
                      .registers = Registers().load};
  AddRole(role, [&](Builder& b) {
    if (KeepsBy(path) && !KeepsApart()) WriteKeptLoads(b);
    if (StreamsBy(path)) tiles_.ForEachCorner(b, [&](const Corner& corner) { WriteLoads(b, path, corner); });
  });
}

// What stays is as much as many a tile: a warp of its own issues it, so that the first tiles of the other operand are
// on their way at the same time.
void KernelBuilder::AddKeepRole() {
  const ir::Role role{.name = "keep",
                      .kind = RoleKind::kLoad,
                      .first_warp = kKeepWarp,
                      .warps = 1,
                      .elected = true,
                      .registers = Registers().load};
  AddRole(role, [&](Builder& b) { WriteKeptLoads(b); });
}

// The MMA issuer of targets with Tensor Memory.
void KernelBuilder::AddMmaRole() {
  const ir::Role role{.name = "mma",
                      .kind = RoleKind::kMma,
                      .first_warp = kMmaWarp,
                      .warps = 1,
                      .elected = true,
                      .leader = schedule_.ctas > 1};
  AddRole(role, [&](Builder& b) {
    AwaitKept(b);
    tiles_.ForEachCorner(b, [&](const Corner& corner) {
      if (terms_.promotes) return WriteProducts(b, ir::kNoValue, corner);
      const ValueId accumulator = b.Put({}, {.channel = accumulators_});
      WriteProducts(b, accumulator, corner);
      b.Send({accumulator});
    });
  });
}

// Asks for the next tile while the current one is computed.
void KernelBuilder::AddScheduleRole() {
  const ir::Role role{
      .name = "schedule", .kind = RoleKind::kSchedule, .first_warp = kScheduleWarp, .warps = 1, .elected = true};
  AddRole(role, [&](Builder& b) {
    tiles_.ForEachTile(b, TileLoop::kEveryTurn, [&](const Tile&) {
      const ValueId answer = b.Put({}, {.channel = grants_});
      b.Request({answer});
      b.Send({answer});
    });
  });
}

// Reads accumulators out and writes D; on targets without Tensor Memory it also multiplies.
void KernelBuilder::AddEpilogueRole(int turn) {
  ir::Role role{.name = in_tensor_memory_ ? "epilogue" : "math",
                .kind = in_tensor_memory_ ? RoleKind::kEpilogue : RoleKind::kMath,
                .first_warp = kEpilogueWarp + turn * EpilogueWarps(),
                .warps = EpilogueWarps(),
                .registers = Registers().math};
  if (Turns() > 1) role.name += std::to_string(turn);
  out_ = turn;
  AddRole(role, [&](Builder& b) {
    if (!in_tensor_memory_) AwaitKept(b);
    LoadTensorFactors(b);
    tiles_.ForEachTile(b, turn, [&](const Tile& tile) {
      if (turn > 0) PassTile(b);
      WriteTurn(b, turn, tile);
      if (turn < Turns() - 1) PassTile(b);
    });
    if (schedule_.d_store == StorePath::kTma) b.BulkWait({}, {.pending = 0, .buffer = out_});
  });
}

void KernelBuilder::WriteTurn(Builder& b, int turn, const Tile& tile) {
  if (in_tensor_memory_ && !terms_.promotes) {
    const Corner corner = tiles_.CornerOf(b, tile);
    return WriteTile(b, b.Take({}, {.channel = accumulators_}), corner);
  }
  if (!terms_.promotes) {
    // Where the tile lies is found behind the products, which need not wait for it.
    WriteProductsInTurn(b, turn, tiles_.ShareOf(tile));
    return WriteTile(b, ir::kNoValue, tiles_.CornerOf(b, tile));
  }
  const Corner corner = tiles_.CornerOf(b, tile);
  place_ = corner;
  place_.row = FirstRow(b, corner);
  WriteSums(b, turn, corner);
  WriteTile(b, ir::kNoValue, corner);
}

// Products into registers. The turn ends when the last ones are issued: those of the next role queue up behind them.
void KernelBuilder::WriteProductsInTurn(Builder& b, int turn, const Corner& corner) {
  ValueId own = ir::kNoValue;
  if (turns_ >= 0) own = turn == 0 ? b.Put({}, {.channel = turns_}) : b.Take({}, {.channel = turns_});
  WriteProducts(b, ir::kNoValue, corner);
  if (turns_ >= 0) turn == 0 ? b.Send({own}) : b.Release({own});
  if (terms_.promotes) return;
  for (const int channel : operand_channels_) b.Drain({}, {.channel = channel, .lag = kReleaseLag});
}

// Of the accumulator, in one block: those that are kept.
int KernelBuilder::RowsOfWarp() const {
  const int rows = RowsAlongN() || program_.kept_rows == 0 ? program_.Rows() : program_.kept_rows;
  return rows / Blocks() / EpilogueWarps();
}

// Where the rows of the accumulator that the warp holds begin in D, those of its first block.
ValueId KernelBuilder::FirstRow(Builder& b, const Corner& corner) const {
  return b.Add({RowsAlongN() ? corner.column : corner.row, b.WarpRow({}, {.rows = RowsOfWarp()})});
}

// The tile's sums, a block of K at a time.
void KernelBuilder::WriteSums(Builder& b, int turn, const Corner& corner) {
  b.ClearSums({}, {.fragment = fragment_});
  if (!in_tensor_memory_) return WriteProductsInTurn(b, turn, corner);
  ForEachBlock(b, corner, [&](ValueId block) {
    const ValueId factors = LoadFactors(b, block);
    const ValueId accumulator = b.Take({}, {.channel = accumulators_});
    ForEachColumns([&](int column, int columns) {
      AddToSums(b, b.AccRead({accumulator, b.Constant(column)}, {.columns = columns, .fragment = fragment_}), column,
                factors);
    });
    b.Release({accumulator});
  });
}

}  // namespace laneshift::compiler
