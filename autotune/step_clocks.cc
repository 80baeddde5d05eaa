#include "autotune/step_clocks.h"

#include <algorithm>
#include <cmath>

namespace laneshift::autotune {
namespace {

constexpr double kStoreRow = 32;    // bytes: a sector of memory
constexpr double kFewTileRows = 8;  // of a group

}  // namespace

double GatherRate(GatherKind kind, const Machine& machine) {
  switch (kind) {
    case GatherKind::kCopy:
      return machine.copy_rate;
    case GatherKind::kPixels:
      return machine.gather_rate;
    case GatherKind::kKnown:
      return machine.known_gather_rate;
  }
  __builtin_unreachable();
}

// Clocks for which a load occupies the path from L2, in addition to those of its rows outside, which are not read.
double LoadClocks(const Step& step, const Machine& machine, const SmShare& share) {
  const double rows = step.bytes / std::max(16.0, step.row_bytes) - step.outside;
  const double engine = step.pixels ? rows / step.sharers / machine.pixel_rows : rows / machine.load_rows;
  const double relief = 1 - machine.cluster_relief * (1 - 1 / step.sharers);
  const double ends = rows * step.partial / step.sharers * machine.partial_row;
  return std::max({engine, step.Inside() * step.requested * relief / share.load_rate, step.Inside() / machine.port}) +
         ends;
}
double LoadIssueClocks(const Step& step, const Machine& machine) {
  return step.accesses > 0 ? step.accesses / machine.piece_rate : step.issues * machine.load_issue;
}
double MemoryClocks(const Step& step, const SmShare& share) {
  return step.cached ? 0 : step.Inside() / step.sharers * share.memory_clocks;
}
double OutsideClocks(const Step& step, const SmShare& share) { return step.outside * share.outside_row; }
// Of the path to memory.
double StoreClocks(const Step& step, const SmShare& share) { return step.bytes / share.store_rate; }
double ThreadStoreClocks(const Step& step, const Machine& machine, const SmShare& share) {
  const double sectors = std::ceil(step.row_bytes / kStoreRow) * kStoreRow / step.row_bytes;
  const double rate = step.staged ? share.store_rate : std::min(machine.thread_store_rate, share.store_rate);
  return step.bytes * sectors / rate;
}
// Of a thread that processes accumulators.
double AccumulatorReadClocks(const Step& step, const Machine& machine) {
  return machine.sums_latency + step.bytes / machine.sums_read;
}
double StageClocks(const Step& step, const Machine& machine) { return step.elements / machine.convert_rate; }
// Of the tensor core, for operations other than MMAs.
double CopyClocks(const Step& step, const Machine& machine) { return step.bytes / machine.shared_read; }
double MoveClocks(const Step& step, const Machine& machine) { return step.issues * machine.tensor_move; }
double TensorStoreClocks(const Step& step, const Machine& machine) {
  return step.issues * machine.tensor_store + ir::kWarpgroupWarps * step.bytes / machine.shared_read;
}
double ArithmeticClocks(const Step& step, const Machine& machine) {
  return step.elements * std::max(step.operations / machine.arithmetic_rate, step.special / machine.special_rate);
}

namespace {

// The time that one tile takes from a role and from shared resources.
struct TileClocks {
  double products = 0, moves = 0;  // of the tensor core
  double loads = 0, memory = 0, stores = 0;
  double l2_reads = 0;  // of `loads`, what L2 is asked for
  double issue = 0;     // by the role's threads
  double sums = 0;      // spent on accumulators after the MMAs
  double others = 0;    // of the last MMAs, what is other warpgroups', for which the role does not wait
  bool drains = false;  // the role waits for its MMAs before it processes accumulators

  // MMAs and their issue overlap; the accumulators follow.
  double Serial(const Machine& machine) const {
    if (!drains || products == 0) return issue + sums;
    return std::max(issue, products - others + machine.product_latency + machine.product_signal) + sums;
  }
};
// What is brought to several SMs is read from L2 once.
void AddLoad(TileClocks& tile, double clocks, const Step& step) {
  tile.loads += clocks;
  tile.l2_reads += clocks / step.sharers;
}
// `iterations`: how often a listed iteration of the K loop is made.
TileClocks ClocksOfTile(const StepList& steps, const Machine& machine, const SmShare& share, double iterations) {
  TileClocks tile;
  for (size_t i = 0; i < steps.kinds(); ++i) {
    const Step& step = steps.kind(i);
    const double times = steps.times(i);
    switch (step.kind) {
      case StepKind::kMma: {
        const double clocks = TimeOf(step, machine).clocks;
        tile.products += times * iterations * clocks;
        tile.others = clocks * (1 - step.own);
        tile.issue += times * iterations * step.depth * machine.product_issue;
        break;
      }
      case StepKind::kMultiply:
        tile.issue += times * iterations * ArithmeticClocks(step, machine);
        break;
      case StepKind::kTensorCopy:
        tile.moves += times * iterations * CopyClocks(step, machine);
        break;
      case StepKind::kTensorMove:
        tile.moves += times * iterations * MoveClocks(step, machine);
        break;
      case StepKind::kTensorStore:
        tile.issue += times * iterations * TensorStoreClocks(step, machine);
        break;
      case StepKind::kLoad:
        AddLoad(tile, times * iterations * (LoadClocks(step, machine, share) + OutsideClocks(step, share)), step);
        tile.memory += times * iterations * MemoryClocks(step, share);
        tile.issue += times * iterations * LoadIssueClocks(step, machine);
        break;
      case StepKind::kGather:
        tile.issue += times * iterations * step.accesses / GatherRate(step.gather, machine);
        break;
      case StepKind::kStore:
        tile.stores += times * StoreClocks(step, share);
        break;
      case StepKind::kStoreThreads:
        tile.stores += times * ThreadStoreClocks(step, machine, share);
        tile.sums += times * ThreadStoreClocks(step, machine, share);
        break;
      case StepKind::kReadAccumulator:
        tile.sums += times * AccumulatorReadClocks(step, machine);
        break;
      case StepKind::kStage:
        tile.sums += times * StageClocks(step, machine);
        break;
      case StepKind::kDrain:
        tile.drains = true;
        break;
      // They wait, or read so little in every tile that a bound is not worthwhile.
      case StepKind::kPut:
      case StepKind::kSend:
      case StepKind::kSendLate:
      case StepKind::kDrainSends:
      case StepKind::kTake:
      case StepKind::kRelease:
      case StepKind::kReleaseLate:
      case StepKind::kAwaitProducts:
      case StepKind::kConvert:
      case StepKind::kReadGlobal:
      case StepKind::kStoreSums:
      case StepKind::kAddSums:
      case StepKind::kStoreWait:
        break;
    }
  }
  return tile;
}

}  // namespace

ProductTime TimeOf(const Step& p, const Machine& machine) {
  const double columns = p.tensor_memory && p.pair && p.rows <= 64 ? p.columns / 2 : p.columns;
  const double multiply = columns / machine.product_columns * p.units;  // an instruction: 32 bytes of K of all rows
  const double read = ((p.a_shared ? p.rows : 0) + p.columns * p.b_share) * p.units;
  const double port = (read * p.step_bytes + p.written * kStepBytes) / machine.shared_read;
  return {p.depth * std::max(multiply, port), port > multiply ? Bound::kSharedMemory : Bound::kTensorCore};
}

BusyClocks BusyOf(const Pipeline& pipeline, const Machine& machine, const SmShare& share, double tiles) {
  // The iterations of the K loop that are not listed are like those that are.
  const double iterations = pipeline.products / std::max(1.0, pipeline.counted);
  const double per_cta = std::ceil(tiles / std::max(1.0, std::min(pipeline.ctas_per_sm, tiles)));
  BusyClocks busy;
  double head = 0, tail = 0, l2_reads = 0;
  bool mixed = false;  // loads may follow the last accumulators
  for (const PipelineRole& role : pipeline.roles) {
    const TileClocks tile = ClocksOfTile(role.tile, machine, share, iterations);
    const double share_of_tiles = tiles / role.pingpong_roles;
    busy.products += share_of_tiles * tile.products;
    busy.tensor += share_of_tiles * (tile.products + tile.moves);
    busy.loads += share_of_tiles * tile.loads;
    l2_reads += share_of_tiles * tile.l2_reads;
    busy.memory += share_of_tiles * tile.memory;
    busy.stores += share_of_tiles * tile.stores;
    const double own = std::floor((per_cta + role.pingpong_roles - 1 - role.pingpong_index) / role.pingpong_roles);
    busy.role = std::max(busy.role, own * (machine.tile_start + tile.Serial(machine)));
    if (tile.loads > 0) head = share.load_latency;
    if (tile.sums > 0) tail = std::max(tail, tile.sums);
    mixed |= tile.loads > 0 && tile.sums > 0;
  }
  if (busy.tensor > 0) busy.tensor += head + machine.product_latency + machine.product_signal + tail;
  if (busy.loads > 0) {
    // With groups clusters make tiles faster only where they have many rows of tiles, and warpgroups that promote in
    // turn (measured on an H200).
    if (!pipeline.of_groups || (pipeline.in_turn && pipeline.tile_rows > kFewTileRows))
      busy.l2_part = l2_reads / busy.loads;
    busy.loads += head + (mixed ? 0 : tail);
  }
  return busy;
}

}  // namespace laneshift::autotune
