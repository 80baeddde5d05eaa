#include "compiler/build/kernel_frame.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/build/accumulation.h"
#include "compiler/build/cta_plan.h"
#include "compiler/build/tile_epilogue.h"
#include "compiler/build/tile_loop.h"
#include "compiler/legality/schedule_facts.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::RoleKind;
using ir::ValueId;

// Answers under way: with two, a request for the tile after the next one is out while the epilogue has the current one.
constexpr int kClcStages = 2;
constexpr size_t kUsualParams = 32;

// Channels by purpose; -1: there is none.
struct Channels {
  std::vector<int> rings;  // of operands that come anew with each tile, in the order in which they were declared
  int resident = -1;       // of the operand that stays
  int accumulators = -1;   // in Tensor Memory
  int overlap = -1;        // of the columns that two accumulators have in common
  int clc = -1;            // of responses of cluster launch control
  int order = -1;          // the ping-pong order of two consumers
  int sums = -1;           // of CTAs of a cluster that share a tile
};

int AddChannel(ir::Program& program, ir::Channel channel) {
  program.channels.push_back(std::move(channel));
  return static_cast<int>(program.channels.size()) - 1;
}

ir::Program DeclareProgram(const KernelParts& parts, const Schedule& schedule, const target::Target& target) {
  ir::Program program = ProgramOfTile(parts.name, schedule, parts.operand_type, target);
  program.row_axis = schedule.rows == RowSide::kM ? ir::Axis::kM : ir::Axis::kN;
  program.cluster_m = schedule.cluster_m;
  program.cluster_n = schedule.cluster_n;
  program.cluster_k = schedule.cluster_k;
  program.ctas = schedule.ctas;
  program.live_rows = parts.live_rows;
  program.diagonal_blocks = parts.diagonal_blocks;
  NameWindows(parts.windows, program);
  NamePatches(parts.patch, program);
  if (parts.operand_bits != ir::BitsOf(parts.operand_type)) program.operand_bits = parts.operand_bits;
  program.sparse_a = parts.sparse_a;
  program.saturates = parts.saturates;
  return program;
}

// Two accumulators for which Tensor Memory has no room have some columns in common, which the epilogue reads first.
int OverlapOf(const ir::Channel& accumulators, const Schedule& schedule, bool promotes, const target::Target& target,
              const ir::Program& program) {
  if (!AccumulatorsMayOverlap(schedule) || promotes) return 0;
  int columns = accumulators.stages * accumulators.columns;
  for (const ir::Channel& channel : program.channels) {
    if (channel.space == ir::Space::kTensor) columns += channel.stages * channel.columns;
  }
  const int missing = std::max(0, columns - target.tmem_columns);
  return missing < accumulators.columns ? missing : 0;
}

Channels DeclareChannels(const Schedule& schedule, const EpilogueTerms& terms, const target::Target& target,
                         ir::Program& program) {
  Channels channels;
  for (size_t i = 0; i < program.channels.size(); ++i) {
    const ir::Channel& channel = program.channels[i];
    if (channel.resident) {
      channels.resident = static_cast<int>(i);
    } else if (channel.space == ir::Space::kShared && !channel.own) {
      channels.rings.push_back(static_cast<int>(i));
    }
  }
  if (target.mma.AccumulatesInTensorMemory()) {
    ir::Channel accumulators{.name = "acc",
                             .space = ir::Space::kTensor,
                             .stages = schedule.acc_stages,
                             .rows = program.Rows(),
                             .columns = program.Columns()};
    accumulators.overlap = OverlapOf(accumulators, schedule, terms.promotes, target, program);
    channels.accumulators = AddChannel(program, accumulators);
    if (accumulators.overlap > 0) {
      channels.overlap = AddChannel(program, {.name = "overlap",
                                              .space = ir::Space::kTensor,
                                              .stages = 1,
                                              .rows = accumulators.rows,
                                              .columns = accumulators.overlap,
                                              .is_overlap = true});
    }
  }
  if (schedule.scheduler == Scheduler::kClc) {
    channels.clc = AddChannel(program, {.name = "clc", .space = ir::Space::kClcResponses, .stages = kClcStages});
  }
  if (schedule.consumers == Consumers::kPingpong) {
    channels.order = AddChannel(program, {.name = "order", .space = ir::Space::kOrder, .stages = 1});
  }
  if (schedule.cluster_k > 1) {
    channels.sums = AddChannel(
        program,
        {.name = "sums", .space = ir::Space::kSums, .stages = 1, .rows = program.Rows(), .columns = program.Columns()});
  }
  return channels;
}

// Where bulk stores write D: its tensor map, and that of the columns after whole panels, where there are any.
void AddMapsOfD(const CtaPlan& plan, std::vector<ir::Param>& params) {
  ir::SharedLayout box = plan.staging.layout;
  params.push_back({Binding::kMapD, box});
  const int rest = plan.columns % plan.staging.panel;
  if (plan.rows_along_n || rest == 0) return;
  box.inner = rest / plan.columns_per_output;
  params.push_back({Binding::kMapDRest, box});
}

// Operands first, then what the epilogue reads and writes, then sizes and scalars: the order of the kernel's
// parameters.
void DeclareParams(const KernelParts& parts, const Schedule& schedule, const CtaPlan& plan, ir::Program& program) {
  const EpilogueTerms& terms = parts.terms;
  std::vector<ir::Param>& params = program.params;
  params.reserve(kUsualParams);
  for (const auto& loader : parts.loaders) loader->AddParams(params);
  if (parts.resident != nullptr) parts.resident->AddParams(params);
  // Of groups threads store the last rows.
  const bool by_threads = !plan.bulk_stores || terms.rows == ir::RowMap::kGroups;
  if (plan.bulk_stores) AddMapsOfD(plan, params);
  if (by_threads) params.push_back({Binding::kBaseD, {}});
  if (by_threads || terms.HasMatrices()) parts.output->AddPitches(Operand::kD, params);
  DeclareEpilogue(terms, *parts.output, program);
  if (schedule.split_k > 1) params.push_back({Binding::kWorkspace, {}});
  if (parts.overlaps_launches) params.push_back({Binding::kFollows, {}});
}

// By which paths operands come: with each tile, or once.
bool StreamsBy(const KernelParts& parts, LoadPath path) {
  return std::any_of(parts.loaders.begin(), parts.loaders.end(),
                     [&](const auto& loader) { return loader->target().path == path; });
}
bool IsResidentBy(const KernelParts& parts, LoadPath path) {
  return parts.resident != nullptr && parts.resident->target().path == path;
}
bool LoadsBy(const KernelParts& parts, LoadPath path) { return StreamsBy(parts, path) || IsResidentBy(parts, path); }
bool LoadsByThreads(const KernelParts& parts) {
  return LoadsBy(parts, LoadPath::kCopy) || LoadsBy(parts, LoadPath::kAsync);
}
// Whether operands that come with each tile are loaded by a role that does not wait for the previous kernel.
bool StreamsEarly(const KernelParts& parts) {
  return std::any_of(parts.loaders.begin(), parts.loaders.end(),
                     [](const auto& loader) { return loader->target().early; });
}
// Warps that gather rows that an index vector names; 0: none do.
int GatherWarps(const KernelParts& parts) {
  return std::accumulate(parts.loaders.begin(), parts.loaders.end(), 0,
                         [](int most, const auto& loader) { return std::max(most, loader->target().gather_warps); });
}

// Whether one role loads all operands, of whole tiles, so that it can fill one more slot after the last of them.
bool MayBeginEarly(const KernelParts& parts, const Schedule& schedule) {
  const bool whole = !DividesK(schedule) && parts.source != ir::WorkSource::kPartsOfK;
  return whole && parts.resident == nullptr && !StreamsEarly(parts) && GatherWarps(parts) == 0 &&
         !LoadsByThreads(parts) && parts.mainloop->MayBegin();
}

// The roles of a kernel, once everything is declared.
class Roles {
 public:
  Roles(const KernelParts& parts, const Schedule& schedule, const Channels& channels, const CtaPlan& plan,
        ir::Program& program);

  void Write();

 private:
  // Whether what is resident has a separate load role.
  bool LoadsResidentApart() const { return IsResidentBy(parts_, LoadPath::kTma) && StreamsBy(parts_, LoadPath::kTma); }
  void AddRole(const ir::Role& role, const std::function<void(Builder&)>& write) { ir::AddRole(program_, role, write); }
  void AddLoads(bool bulk);
  void AddResidentLoads();
  void AddEarlyLoads();
  void AddSeparateLoads(const char* name, bool early, const std::function<void(Builder&)>& write);
  void AddGather();
  void LoadTiles(Builder& b, const std::function<bool(const LoadTarget&)>& chosen) const;
  void AddProducts();
  void AddStores();
  void AddRequests();
  void AddConsumer(int consumer);
  void AwaitResident(Builder& b) const;
  void PassTile(Builder& b, const Tile& tile) const;
  void WriteConsumedTile(Builder& b, int consumer, const Tile& tile, const TileEpilogue::Role& role) const;
  ValueId CountedRows(const Tile& tile) const;
  void FindScaleFactors(Builder& b, ProductTile& product) const;
  void MultiplyInOrder(Builder& b, int consumer, const ProductTile& tile) const;
  void AddUpSlots(Builder& b, const ProductTile& tile) const;

  const KernelParts& parts_;
  const Schedule& schedule_;
  const Channels& channels_;
  const CtaPlan& plan_;
  ir::Program& program_;
  const TileLoop tiles_;
  const Accumulation sums_;
  const TileEpilogue epilogue_;
};

TileLoop LoopOf(const KernelParts& parts, const Schedule& schedule, const Channels& channels, const CtaPlan& plan,
                const ir::Program& program) {
  return {.tile_m = program.TileRows(),
          .tile_n = schedule.tile_n,
          .tile_k = schedule.tile_k,
          .raster = schedule.raster,
          .slices = schedule.split_k,
          .cluster_k = schedule.cluster_k,
          .pingpong_roles = plan.consumers,
          .row_step = parts.row_step,
          .clc = channels.clc,
          .source = channels.clc >= 0 ? ir::WorkSource::kLaunchControl : parts.source,
          .blocks = [&k = parts.k](Builder& b) { return k.Blocks(b); }};
}

// Alternating accumulators gain by late reads where the MMAs of a block last longer than these, one accumulator where
// ptxas moves no read between MMAs: in clusters whose CTAs load for each other (ADR 0076).
FactorReads SlotFactorReads(const Schedule& schedule, const CtaPlan& plan) {
  constexpr int kColumnsThatHideReads = 96;
  if (plan.promotion == Promotion::kAlternating)
    return plan.columns < kColumnsThatHideReads ? FactorReads::kBeforeMmas : FactorReads::kHeldAfterMmas;
  return schedule.cluster_m * schedule.cluster_n > 1 ? FactorReads::kAfterMmas : FactorReads::kBeforeMmas;
}

Accumulation AccumulationOf(const EpilogueTerms& terms, const Schedule& schedule, const Channels& channels,
                            const CtaPlan& plan, const KernelParts& parts) {
  Accumulation sums{.in_tensor_memory = plan.in_tensor_memory,
                    .rows_along_n = plan.rows_along_n,
                    .promotes = terms.promotes,
                    .promotion = plan.promotion,
                    .blocks = plan.blocks,
                    .columns = plan.columns,
                    .channel = channels.accumulators,
                    .rings = channels.rings,
                    .fragment = plan.fragment};
  if (terms.promotes) sums.runs = plan.Runs();
  sums.scale_tiles = terms.scale_tiles;
  sums.slot_factor_reads = SlotFactorReads(schedule, plan);
  sums.slot_metadata = parts.metadata;
  if (terms.scale == Scaling::kBlock && !terms.scale_tiles.InSlots())
    sums.scale_runs = ir::ScaleRunsOfTile(schedule.tile_n);
  if (parts.source == ir::WorkSource::kMaskedGroups) sums.rows_of_scales = ir::Binding::kGroupRows;
  if (parts.indexes_a) sums.rows_of_scales = ir::Binding::kStoredRowsA;
  return sums;
}

Roles::Roles(const KernelParts& parts, const Schedule& schedule, const Channels& channels, const CtaPlan& plan,
             ir::Program& program)
    : parts_(parts),
      schedule_(schedule),
      channels_(channels),
      plan_(plan),
      program_(program),
      tiles_(LoopOf(parts, schedule, channels, plan, program)),
      sums_(AccumulationOf(parts.terms, schedule, channels, plan, parts)),
      epilogue_(parts.terms, plan, schedule.d_store, {.channel = channels.sums, .slices_apart = parts.slices_apart},
                program, *parts.output) {}

void Roles::Write() {
  if (LoadsBy(parts_, LoadPath::kTma)) AddLoads(true);
  if (LoadsResidentApart()) AddResidentLoads();
  if (StreamsEarly(parts_)) AddEarlyLoads();
  if (GatherWarps(parts_) > 0) AddGather();
  if (plan_.in_tensor_memory) AddProducts();
  if (channels_.clc >= 0) AddRequests();
  if (LoadsByThreads(parts_)) AddLoads(false);
  for (int consumer = 0; consumer < plan_.consumers; ++consumer) AddConsumer(consumer);
  if (parts_.mainloop->HasStores()) AddStores();
}

// By bulk copies, or by threads.
void Roles::AddLoads(bool bulk) {
  const int first_free_warp = LoadsBy(parts_, LoadPath::kTma) ? kLoadWarp + 1 : kLoadWarp;
  const int first_copy_warp = channels_.clc >= 0       ? kScheduleWarp + 1
                              : plan_.in_tensor_memory ? kMmaWarp + 1
                                                       : first_free_warp;
  const ir::Role role{.name = bulk ? "load" : "copy",
                      .kind = bulk ? RoleKind::kLoad : RoleKind::kCopy,
                      .first_warp = bulk ? kLoadWarp : first_copy_warp,
                      .warps = bulk ? 1 : kEpilogueWarp - first_copy_warp,
                      .elected = bulk,
                      .registers = plan_.registers.load};
  AddRole(role, [&](Builder& b) {
    const auto chosen = [bulk](const LoadTarget& target) { return IsByThreads(target.path) != bulk; };
    if (parts_.resident != nullptr && chosen(parts_.resident->target()) && !LoadsResidentApart())
      parts_.resident->Load(b);
    LoadTiles(b, [&](const LoadTarget& target) { return chosen(target) && !target.early && target.gather_warps == 0; });
  });
}

// The tiles of the chosen operands.
void Roles::LoadTiles(Builder& b, const std::function<bool(const LoadTarget&)>& chosen) const {
  std::vector<const OperandLoader*> loaders;
  for (const auto& loader : parts_.loaders) {
    if (chosen(loader->target())) loaders.push_back(loader.get());
  }
  if (loaders.empty()) return;
  // With work stealing the next tile is known when the other roles have gone on, so that they wait for all of this one.
  const bool steals = channels_.clc >= 0;
  tiles_.ForEachCorner(b, [&](const Corner& corner) {
    LoadTile(b, parts_.k, corner, loaders);
    if (steals) SendRest(b, loaders);
  });
  if (!steals) SendRest(b, loaders);
  // After the last tile, too, products are issued: of any block.
  if (plan_.begins_early) LoadFirstBlock(b, tiles_.FirstCorner(b), loaders);
}

// A warp in addition to that of the usual loads.
void Roles::AddSeparateLoads(const char* name, bool early, const std::function<void(Builder&)>& write) {
  const ir::Role role{.name = name,
                      .kind = RoleKind::kLoad,
                      .first_warp = kResidentWarp,
                      .warps = 1,
                      .elected = true,
                      .registers = plan_.registers.load,
                      .early = early};
  AddRole(role, write);
}

// What is resident is as much as many a tile: a warp of its own issues it, so that the first tiles of the other operand
// are on their way at the same time.
void Roles::AddResidentLoads() {
  AddSeparateLoads("resident", parts_.resident->target().early, [&](Builder& b) { parts_.resident->Load(b); });
}

// What no other kernel writes comes by a separate warp, which fills the ring while the previous kernel still runs.
void Roles::AddEarlyLoads() {
  AddSeparateLoads("early", true,
                   [&](Builder& b) { LoadTiles(b, [](const LoadTarget& target) { return target.early; }); });
}

// Every thread issues the copies of some rows: one thread would take longer than the products do.
void Roles::AddGather() {
  const ir::Role role{.name = "gather",
                      .kind = RoleKind::kLoad,
                      .first_warp = kGatherWarp,
                      .warps = GatherWarps(parts_),
                      .registers = plan_.registers.load};
  AddRole(role, [&](Builder& b) { LoadTiles(b, [](const LoadTarget& target) { return target.gather_warps > 0; }); });
}

void Roles::AwaitResident(Builder& b) const {
  if (parts_.resident != nullptr) b.Await({parts_.resident->Slots(b)}, {.channel = channels_.resident});
}

// The MMA issuer of targets with Tensor Memory.
void Roles::AddProducts() {
  const ir::Role role{.name = "mma",
                      .kind = RoleKind::kMma,
                      .first_warp = kMmaWarp,
                      .warps = 1,
                      .elected = true,
                      .leader = schedule_.ctas > 1};
  AddRole(role, [&](Builder& b) {
    AwaitResident(b);
    tiles_.ForEachCorner(b, [&](const Corner& corner) {
      ProductTile tile{.corner = corner};
      if (parts_.terms.promotes) return parts_.mainloop->Write(b, sums_, tile);
      tile.accumulator = b.Put({}, {.channel = channels_.accumulators});
      ValueId overlap = ir::kNoValue;
      if (channels_.overlap >= 0) overlap = b.Put({}, {.channel = channels_.overlap});
      parts_.mainloop->Write(b, sums_, tile);
      if (overlap != ir::kNoValue) b.Send({overlap});
      b.Send({tile.accumulator});
    });
  });
}

// A warpgroup after those of the epilogue, whose warps reach all lanes of Tensor Memory.
void Roles::AddStores() {
  const ir::Role role{.name = "scales",
                      .kind = RoleKind::kCopy,
                      .first_warp = kEpilogueWarp + plan_.consumers * plan_.warps,
                      .warps = ir::kWarpgroupWarps};
  AddRole(role, [&](Builder& b) {
    tiles_.ForEachCorner(b, [&](const Corner& corner) { parts_.mainloop->WriteStores(b, corner); });
  });
}

// Asks for the next tile while the current one is computed.
void Roles::AddRequests() {
  const ir::Role role{
      .name = "schedule", .kind = RoleKind::kSchedule, .first_warp = kScheduleWarp, .warps = 1, .elected = true};
  AddRole(role, [&](Builder& b) {
    tiles_.ForEachTile(b, TileLoop::kEveryTile, [&](const Tile&) {
      const ValueId response = b.Put({}, {.channel = channels_.clc});
      b.WorkRequest({response});
      b.Send({response});
    });
  });
}

// Reads accumulators out and writes D; on targets without Tensor Memory it also multiplies.
void Roles::AddConsumer(int consumer) {
  const bool multiplies = !plan_.in_tensor_memory;
  ir::Role role{.name = multiplies ? "math" : "epilogue",
                .kind = multiplies ? RoleKind::kMath : RoleKind::kEpilogue,
                .first_warp = kEpilogueWarp + consumer * plan_.warps,
                .warps = plan_.warps,
                .registers = plan_.registers.math};
  if (plan_.consumers > 1) role.name += std::to_string(consumer);
  AddRole(role, [&](Builder& b) {
    if (multiplies) AwaitResident(b);
    const TileEpilogue::Role of_role = epilogue_.Begin(b, consumer);
    if (plan_.begins_early) {
      parts_.mainloop->Begin(b, sums_);
      b.MmaWait({}, {.pending = 0});
    }
    tiles_.ForEachTile(b, consumer, [&](const Tile& tile) {
      const bool differ = tiles_.TilesDiffer() && plan_.consumers > 1;
      if (consumer > 0 || differ) PassTile(b, tile);
      WriteConsumedTile(b, consumer, tile, of_role);
      if (consumer < plan_.consumers - 1 && !differ) PassTile(b, tile);
    });
    if (plan_.begins_early) parts_.mainloop->End(b);
    epilogue_.End(b, of_role);
  });
}

// The tile before or after this one is the other consumer's.
void Roles::PassTile(Builder& b, const Tile& tile) const {
  for (const int ring : channels_.rings) {
    const auto loader = std::find_if(parts_.loaders.begin(), parts_.loaders.end(),
                                     [&](const auto& one) { return one->target().channel == ring; });
    tiles_.PassTile(b, tile, ring, (*loader)->target().slots_of_block);
  }
}

// Threads load those of D's rows, or of rows of a group; a slot has those of the tile, from its first line on.
void Roles::FindScaleFactors(Builder& b, ProductTile& product) const {
  // Those of rows that an index vector names are one matrix, in which threads find them.
  const ScaleCorner corner = parts_.indexes_a ? ScaleCorner{product.corner.row, b.Constant(0)}
                                              : ScalesOfRows(b, product.corner, parts_.source);
  const SlotScales& tiles = parts_.terms.scale_tiles;
  ValueId row = corner.row, column = product.corner.column;
  product.scale_matrix = corner.matrix;
  if (!tiles.InSlots() && row == product.corner.row) {
    for (const ValueId warp_row : product.warp_rows) product.scale_starts.push_back({warp_row, column});
    return;
  }
  product.scale_starts = epilogue_.ScaleStarts(b, tiles.InSlots() ? tiles.rows_of_tile : schedule_.tile_m);
  if (tiles.InSlots()) {
    if (tiles.a_vector) product.scales_of_a = VectorOfScales(b, corner, parts_.source, tiles.packed);
    if (tiles.b_vector) product.scales_of_b = VectorOfScales(b, product.corner);
    row = tiles.aligned || tiles.a_vector ? ir::kNoValue : b.Rem({row, b.Constant(ir::kFactorsOfLine)});
    column = b.Rem({column, b.Constant(static_cast<int>(kScaleRun))});
  }
  const auto add = [&](ValueId first, ValueId& place) {
    place = first == ir::kNoValue ? place : place == ir::kNoValue ? first : b.Add({first, place});
  };
  for (ScaleStart& place : product.scale_starts) {
    add(row, place.row);
    add(column, place.column);
    if (place.row == ir::kNoValue) place.row = b.Constant(0);
  }
}

// Rows of the tile that are multiplied, where those of a group are divided among its tiles; else none.
ValueId Roles::CountedRows(const Tile& tile) const {
  return tiles_.row_step > 0 ? TileLoop::RowsOfGroup(tile) : ir::kNoValue;
}

void Roles::WriteConsumedTile(Builder& b, int consumer, const Tile& tile, const TileEpilogue::Role& role) const {
  if (!parts_.terms.promotes && plan_.in_tensor_memory) {
    const Corner corner = tiles_.CornerOf(b, tile);
    epilogue_.Prefetch(b, [&] { return corner; });
    const ValueId accumulator = b.Take({}, {.channel = channels_.accumulators});
    if (channels_.overlap < 0) return epilogue_.WriteTile(b, role, {accumulator}, corner, {});
    const ValueId overlap = b.Take({}, {.channel = channels_.overlap});
    const int columns = program_.channels[static_cast<size_t>(channels_.overlap)].columns;
    return epilogue_.WriteTile(b, role, {accumulator, overlap, columns}, corner, {});
  }
  if (!parts_.terms.promotes) {
    // Where the tile lies is found again after the products, so that it is held in no registers meanwhile.
    epilogue_.Prefetch(b, [&] { return tiles_.CornerOf(b, tile); });
    MultiplyInOrder(b, consumer, {.corner = tiles_.SliceOf(tile), .rows = CountedRows(tile)});
    return epilogue_.WriteTile(b, role, {}, tiles_.CornerOf(b, tile), {});
  }
  ProductTile product{.corner = tiles_.CornerOf(b, tile), .rows = CountedRows(tile), .begun = plan_.begins_early};
  epilogue_.Prefetch(b, [&] { return product.corner; });
  product.warp_rows = epilogue_.WarpRows(b, product.corner);
  if (parts_.terms.scale == Scaling::kBlock) FindScaleFactors(b, product);
  b.ClearPromoted({}, {.fragment = plan_.fragment});
  plan_.in_tensor_memory ? AddUpSlots(b, product) : MultiplyInOrder(b, consumer, product);
  if (plan_.begins_early) parts_.mainloop->Begin(b, sums_);
  epilogue_.WriteTile(b, role, {}, product.corner, product.warp_rows);
  if (plan_.begins_early) b.MmaWait({}, {.pending = 0});
}

// Products into registers. The turn ends when the last ones are issued: those of the other consumer queue up after
// them.
void Roles::MultiplyInOrder(Builder& b, int consumer, const ProductTile& tile) const {
  const ir::ChannelAttrs order{.channel = channels_.order};
  ValueId own = ir::kNoValue;
  if (channels_.order >= 0) own = consumer == 0 ? b.Put({}, order) : b.Take({}, order);
  parts_.mainloop->Write(b, sums_, tile);
  if (channels_.order >= 0) consumer == 0 ? b.Send({own}) : b.Release({own});
  if (!parts_.terms.promotes) sums_.Drain(b);
}

// The sums of a tile in Tensor Memory, a block of K at a time.
void Roles::AddUpSlots(Builder& b, const ProductTile& tile) const {
  const SlotScales& tiles = parts_.terms.scale_tiles;
  sums_.LoadScaleFactors(b, tile, KLoop::First(b, tile.corner), 0, 0);
  parts_.k.ForEachNumber(b, tile.corner, [&](ValueId number) {
    const ValueId slot = tiles.InSlots() ? b.Take({}, {.channel = tiles.ring}) : ir::kNoValue;
    const ValueId accumulator = b.Take({}, {.channel = channels_.accumulators});
    BlockFactors scale_factors =
        tiles.InSlots() ? sums_.FactorsOfSlot(tile, slot, number) : sums_.ReadScaleFactors(b, tile, 0);
    sums_.ReadFromSlot(b, scale_factors);
    sums_.LoadScaleFactors(b, tile, number, 1, 0);
    sums_.AddSlot(b, accumulator, scale_factors);
    b.Release({accumulator});
    if (tiles.InSlots()) b.Release({slot});
  });
}

}  // namespace

void NamePatches(const Spatial& patch, ir::Program& program) {
  program.patch_d = static_cast<int>(patch[kDepth]);
  program.patch_h = static_cast<int>(patch[kHeight]);
  program.patch_w = static_cast<int>(patch[kWidth]);
}

void NameWindows(const PixelWindows& windows, ir::Program& program) {
  program.window_lines = windows.lines;
  program.window_spans = windows.spans;
  program.window_rows = windows.rows;
  program.window_channels = windows.channels;
}

bool AccumulatorsMayOverlap(const Schedule& schedule) { return schedule.acc_stages == 2 && !DividesK(schedule); }

ir::Program ProgramOfTile(std::string name, const Schedule& schedule, DataType operand_type,
                          const target::Target& target) {
  ir::Program program;
  program.name = std::move(name);
  program.target = target.name;
  program.tile_m = schedule.tile_m;
  program.tile_n = schedule.tile_n;
  program.tile_k = schedule.tile_k;
  program.operand_type = operand_type;
  return program;
}

ir::Program JoinKernel(KernelParts parts, const Schedule& schedule, const target::Target& target) {
  const bool copies = LoadsByThreads(parts);
  const bool many_addresses = std::any_of(parts.loaders.begin(), parts.loaders.end(),
                                          [](const auto& loader) { return loader->KeepsManyAddresses(); });
  ir::Program program = DeclareProgram(parts, schedule, target);
  program.channels = std::move(parts.channels);
  const Channels channels = DeclareChannels(schedule, parts.terms, target, program);
  const bool single_accesses = parts.output->AccessWidthOf(Operand::kD, 2) == 1;
  const int starts = std::accumulate(parts.loaders.begin(), parts.loaders.end(), 0,
                                     [](int sum, const auto& loader) { return sum + loader->StartRegisters(); });
  const int overlap = channels.overlap < 0 ? 0 : program.channels[static_cast<size_t>(channels.overlap)].columns;
  const bool may_begin = parts.has_waves && MayBeginEarly(parts, schedule);
  const CtaPlan plan =
      PlanCta({program, channels.rings, copies, many_addresses, single_accesses, starts, overlap, may_begin}, schedule,
              parts.terms, target);
  program.buffers = plan.buffers;
  DeclareParams(parts, schedule, plan, program);
  Roles(parts, schedule, channels, plan, program).Write();
  for (const ir::Role& role : program.roles)
    program.threads = std::max(program.threads, 32 * (role.first_warp + role.warps));
  return program;
}

}  // namespace laneshift::compiler
