#include "autotune/timing_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "autotune/move_time.h"
#include "autotune/simulation.h"
#include "compiler/compile.h"

namespace laneshift::autotune {
namespace {

struct BoundText {
  std::string_view name, doc;
};
constexpr BoundText kBoundTexts[] = {
#define LS_BOUND_TEXT(Name, text, doc) {text, doc},
    LS_BOUNDS(LS_BOUND_TEXT)
#undef LS_BOUND_TEXT
};

// How the tiles of a problem are distributed over the SMs.
struct Spread {
  double tiles = 0;
  double rounds = 1;     // tiles of the busiest SM
  double active = 1;     // SMs at work, on average
  double last = 1;       // SMs at work in the last round
  double in_flight = 1;  // tiles that are computed at once
};

Spread SpreadOf(const Pipeline& p, double tiles, const Machine& machine) {
  const double sms = p.most_sms > 0 ? std::min<double>(p.most_sms, machine.sm_count) : machine.sm_count;
  const double at_once = std::max(1.0, std::floor(sms / p.sms_per_tile));
  const double groups = std::max(1.0, std::floor(at_once / p.cta_multiple)) * p.cta_multiple;
  // If the multiple is more than there are SMs, some CTAs begin when others have ended.
  const double waves = std::ceil(groups / at_once);
  Spread spread{.tiles = tiles};
  const double tiles_of_cta = std::ceil(tiles / groups);
  spread.rounds = tiles_of_cta * waves;
  spread.active = std::min<double>(std::min(sms, groups * p.sms_per_tile), tiles * p.sms_per_tile / spread.rounds);
  spread.last = (tiles - (tiles_of_cta - 1) * groups - (waves - 1) * at_once) * p.sms_per_tile;
  spread.in_flight = std::min(tiles, std::min(groups, at_once) * p.ctas_per_sm);
  return spread;
}

TileWindow TilesAtOnce(const Pipeline& p, const Spread& spread) {
  const double band = std::min(p.raster, p.tile_rows);
  if (p.order == TileOrder::kRuns && spread.rounds > 1) {
    // Concurrent tiles are a run apart, and return to only some rows of the band.
    const auto run = static_cast<int64_t>(spread.rounds), height = static_cast<int64_t>(band);
    return {.rows = std::min(spread.in_flight, band / static_cast<double>(std::gcd(run, height))),
            .columns = std::clamp(spread.in_flight * spread.rounds / band, 1.0, p.tile_columns)};
  }
  return WindowOf(p.tile_rows, p.tile_columns, p.raster, spread.in_flight);
}

// What memory has to deliver, and how often a tile's load has to wait for it.
struct MemoryReads {
  double bytes = 0;
  double served = 0;  // as many as memory would deliver meanwhile at its full rate
  double waits = 0;   // part of the loads
};

// The part of a tile's time by which CTAs with separate runs that began together drift apart; 0.2 follows from the hit
// rates of a published kernel (docs/timing-model.md).
constexpr double kDrift = 0.2;

// The number of rounds for which CTAs that begin together stay in step. Later, those that start when others end have
// their starts spread over the time of a tile, and persistent ones have drifted apart.
constexpr double kRoundsInStep = 8;
bool InStep(const Pipeline& p, const Spread& spread) {
  return p.order != TileOrder::kStolen || spread.rounds <= kRoundsInStep * p.ctas_per_sm;
}

// Tiles that share an operand read it once if the later one finds it in the cache. Until then all others continue to
// read, and the half of the cache through which an SM reads has to hold it. Nothing happens exactly in order, so the
// part that is still cached falls gradually. `apart` is in parts of a tile's time.
double CachedPart(double apart, double bytes_at_once, const Machine& machine) {
  return std::clamp(2 - apart * bytes_at_once / (machine.l2_bytes * 1e6 / 2), 0.0, 1.0);
}

// How often memory delivers an operand.
struct Repeats {
  double a = 1, b = 1;
};
Repeats RepeatsOf(const Pipeline& p, const Machine& machine, const Spread& spread, const TileWindow& window) {
  const double room = machine.l2_bytes * 1e6 * kUseOfL2;
  const bool resident = p.b.tile_bytes == 0;  // B, in shared memory
  if (p.a.unique_bytes + p.b.unique_bytes <= room) {
    // What a band of tiles stores displaces what it has loaded, before the next band loads the same of B.
    const double bands = std::ceil(p.tile_rows / std::min(p.raster, p.tile_rows));
    const bool displaces = p.b.unique_bytes + (p.a.unique_bytes + p.stored_bytes) / bands > room;
    return {.b = displaces && !resident ? bands : 1};
  }
  const double a_at_once = p.a.unique_bytes * window.rows / p.tile_rows;
  const double b_at_once = p.b.unique_bytes * window.columns / p.tile_columns;
  Repeats shared, unshared = {.a = p.tile_columns, .b = p.tile_rows};
  double a_apart = 0, b_apart = 0;
  if (p.order == TileOrder::kRuns && spread.rounds > 1) {
    // Every CTA has another row of tiles each time, and reads the same column again.
    shared = {.a = std::max(1.0, spread.rounds * window.rows / p.tile_rows),
              .b = std::max(1.0, spread.rounds * window.columns / p.tile_columns)};
    a_apart = b_apart = kDrift;
  } else {
    // The tile order is in bands: B is read for each of them unless it is resident, the band's part of A once.
    if (a_at_once > room) shared.a = std::ceil(p.tile_columns / window.columns);
    if (p.b.unique_bytes > room / 2 && !resident) shared.b = std::ceil(p.tile_rows / window.rows);
  }
  if (!InStep(p, spread)) {
    // CTAs start when others end: those of one row of tiles a column after each other, those of one column at once, or
    // a band after each other.
    const double band = std::min(p.raster, p.tile_rows);
    unshared.b = std::ceil(p.tile_rows / band);
    a_apart = band / spread.in_flight;
    b_apart = band * p.tile_columns / spread.in_flight;
  }
  const double a_cached = CachedPart(a_apart, a_at_once + b_at_once, machine);
  const double b_cached = CachedPart(b_apart, a_at_once + b_at_once, machine);
  if (window.columns > 1) shared.a += (1 - a_cached) * std::max(0.0, unshared.a - shared.a);
  if (window.rows > 1) shared.b += (1 - b_cached) * std::max(0.0, unshared.b - shared.b);
  return shared;
}

MemoryReads ReadsOf(const Pipeline& p, const Machine& machine, const Spread& spread) {
  // Each half of the cache holds what its own SMs read, so data that all read counts twice.
  if (!p.cold && p.a.unique_bytes + p.b.unique_bytes < machine.l2_bytes * 1e6 / 2) return {};
  const TileWindow window = TilesAtOnce(p, spread);
  const Repeats repeats = RepeatsOf(p, machine, spread, window);
  const double a = p.a.unique_bytes * repeats.a, b = p.b.unique_bytes * repeats.b;
  // Tiles that share a load wait for memory together: a tile that finds the block in the cache finishes it sooner, and
  // is the first with the next one.
  const auto waits = [&](double read, double filled, double sharers) {
    return filled > 0 ? std::min(1.0, read / filled * sharers) : 0;
  };
  constexpr double kShortRow = 128;
  const auto served = [&](double bytes, const OperandReads& of) {
    return of.row_bytes <= kShortRow ? bytes / machine.short_rows : bytes;
  };
  return {.bytes = a + b,
          .served = served(a, p.a) + served(b, p.b),
          .waits = std::max(waits(a, p.a.tile_bytes * spread.tiles, window.columns),
                            waits(b, p.b.tile_bytes * spread.tiles, window.rows))};
}

SmShare ShareOf(const Pipeline& p, const Machine& machine, const Spread& spread, const MemoryReads& reads) {
  SmShare share;
  share.load_rate = std::min(machine.port, machine.l2_rate * machine.sm_count / spread.active);
  const double filled = (p.a.tile_bytes + p.b.tile_bytes) * spread.tiles * p.sms_per_tile;
  if (filled > 0) {
    const double bytes_of_memory = machine.memory_rate * 1e3 / machine.clock_ghz / spread.active;  // a clock
    share.memory_clocks = std::min(1.0, reads.served / filled) / bytes_of_memory;
  }
  share.in_step = InStep(p, spread);
  share.load_latency = machine.load_latency + machine.memory_latency * reads.waits;
  // Warpgroups that promote in turn release a slot one after the other, the first of them early.
  constexpr double kSignalInTurn = 0.5;  // fitted to bench/measured/h200_three.txt
  if (p.shares_operands) share.load_latency += machine.cluster_signal * (p.in_turn ? kSignalInTurn : 1);
  share.memory_queue = machine.memory_queue * reads.waits;
  share.outside_row = std::max(machine.outside_row, spread.active / machine.outside_rate);
  share.store_rate = machine.store_rate;
  return share;
}

// The limits of one SM.
struct Shares {
  Spread spread;
  MemoryReads reads;
  SmShare share;
};
Shares SharesOf(const Pipeline& p, double tiles, const Machine& machine) {
  const Spread spread = SpreadOf(p, tiles, machine);
  const MemoryReads reads = ReadsOf(p, machine, spread);
  return {spread, reads, ShareOf(p, machine, spread, reads)};
}

// Memory keeps its rate only without contention: two overlapping times take a bit more than the longer one, the more so
// the closer they are, and traffic from L2 disturbs memory. Both numbers were fitted to bench/measured, where they
// order schedules that would be equal by the longer time only.
constexpr double kPathShare = 0.03;
double Together(double a, double b) {
  constexpr double kNorm = 16;
  return std::pow(std::pow(a, kNorm) + std::pow(b, kNorm), 1 / kNorm);
}

// The clock while the tensor cores of all SMs multiply for this fraction of the time.
double ClockAt(double tensor_share, const Machine& machine) {
  return machine.clock_ghz - (machine.clock_ghz - machine.busy_clock_ghz) * tensor_share;
}

}  // namespace

std::string_view BoundName(Bound bound) { return kBoundTexts[static_cast<size_t>(bound)].name; }
std::string_view BoundDoc(Bound bound) { return kBoundTexts[static_cast<size_t>(bound)].doc; }

TileWindow WindowOf(double tile_rows, double tile_columns, double raster, double in_flight) {
  const double band = std::min(raster, tile_rows);
  // If one band is too short for all active SMs, they are in the next ones too.
  const double columns = std::clamp(in_flight / band, 1.0, tile_columns);
  return {.rows = std::min(tile_rows, std::max(std::min(in_flight, band), in_flight / columns)), .columns = columns};
}

double DriftStretch(TileOrder order, double rounds, const Machine& machine) {
  // A faster SM can take tiles from the slowest one only with work stealing. After few rounds no SM is much slower.
  return order != TileOrder::kStolen && rounds > kRoundsInStep ? 1 + machine.walk_lag : 1;
}

double LeastMicroseconds(double clocks, double products, const Machine& machine) {
  const double fall = machine.clock_ghz - machine.busy_clock_ghz;
  if (fall <= 0 || clocks <= 0) return clocks / std::max(machine.clock_ghz, machine.busy_clock_ghz) / 1e3;
  // Up to half of the clock, more clocks never take less time; beyond that, they do not take less than this.
  if (2 * fall <= machine.clock_ghz) return clocks / ClockAt(std::min(1.0, products / clocks), machine) / 1e3;
  return (clocks + fall / machine.clock_ghz * std::min(products, clocks)) / machine.clock_ghz / 1e3;
}

namespace {

// A lower bound in microseconds, from what an SM is busy with and what memory delivers and accepts.
struct Floors {
  double busy_us = 0, memory_us = 0;
};

// Of kernels that begin early and follow each other; fitted to bench/measured/h200_early.txt and h200_decode.txt.
// Memory's rate falls by this times the square of the part of the SMs that have no tile: the next kernel fills its
// rings there, which makes up for a few SMs.
constexpr double kIdleLoss = 1.5;
// CTAs take SMs in the order in which the kernel before leaves them. Those that read the same B are not in one GPC
// then, and L2 serves each of them: so much of the time in which it would serve all SMs counts for memory.
constexpr double kServedAgain = 0.4;
constexpr double kEarlyPathShare = 0.16;  // in the place of kPathShare

// The tiles of the last round may have too few SMs for the rate of memory. Kernels that begin early read at a lower
// rate while some SMs have no tile.
double ReadingTime(const Pipeline& p, const Machine& machine, const Spread& spread, const MemoryReads& reads) {
  if (p.begins_early) {
    const double idle = 1 - std::min(1.0, spread.active / machine.sm_count);
    const double again = std::max(0.0, p.b.tile_bytes * spread.tiles - p.b.unique_bytes);  // of B
    const double l2_rate = machine.l2_rate * machine.sm_count * machine.clock_ghz / 1e3;
    return (reads.served / (machine.memory_rate * (1 - kIdleLoss * idle * idle)) + kServedAgain * again / l2_rate) /
           1e6;
  }
  const double of_last = spread.last / (spread.tiles * p.sms_per_tile);
  const double rate_of_last = std::min(machine.memory_rate, spread.last * machine.sm_memory_rate / 1e3);
  return reads.served * ((1 - of_last) / machine.memory_rate + of_last / rate_of_last) / 1e6;
}

Floors FloorsOf(const Pipeline& p, const Machine& machine, const Spread& spread, const MemoryReads& reads,
                const BusyClocks& busy) {
  const double clocks = busy.Most() * DriftStretch(p.order, spread.rounds, machine);
  return {.busy_us = LeastMicroseconds(clocks, busy.products * spread.active / machine.sm_count, machine),
          .memory_us = std::max(ReadingTime(p, machine, spread, reads) + p.stored_bytes / machine.memory_rate / 1e6,
                                busy.memory / machine.clock_ghz / 1e3)};
}

// With this number of tiles.
double LeastTimeOf(const Pipeline& pipeline, double tiles, const Machine& machine) {
  constexpr double kRounding = 1 - 1e-9;
  const auto [spread, reads, share] = SharesOf(pipeline, tiles, machine);
  const Floors floors = FloorsOf(pipeline, machine, spread, reads, BusyOf(pipeline, machine, share, spread.rounds));
  const double us = std::max(floors.busy_us, floors.memory_us) * pipeline.work;
  return (MoveTime(pipeline.moves.before, machine) + us + MoveTime(pipeline.moves.after, machine) +
          machine.launch_us * pipeline.launches) *
         kRounding;
}

}  // namespace

double LeastTime(const Pipeline& pipeline, const Machine& machine) {
  if (pipeline.likely_tiles.empty()) return LeastTimeOf(pipeline, pipeline.tiles, machine);
  double sum = 0;
  for (const double tiles : pipeline.likely_tiles) sum += LeastTimeOf(pipeline, tiles, machine);
  return sum / static_cast<double>(pipeline.likely_tiles.size());
}

namespace {

// The fraction of the time of all SMs for which a unit of theirs is busy: the tensor core, or the path from L2.
double TimeShare(double unit, double clocks, double active, const Machine& machine) {
  return clocks > 0 ? std::min(1.0, unit / clocks * active / machine.sm_count) : 0;
}

// The busiest SM.
struct SimulatedSm {
  Spread spread;
  MemoryReads reads;
  BusyClocks busy;
  double memory_ghz = 0;
  SmTime time;
};
SimulatedSm Simulate(const Pipeline& pipeline, double tiles, const Machine& machine, std::vector<TracedSpan>* trace) {
  auto [spread, reads, share] = SharesOf(pipeline, tiles, machine);
  // Memory has a separate clock: measured in clocks of an SM it takes less while these are long. If memory is the
  // bound, its traffic determines how long they are.
  const BusyClocks busy = BusyOf(pipeline, machine, share, spread.rounds);
  const double clocks = std::max(busy.Most(), busy.memory);
  const double memory_ghz = ClockAt(TimeShare(busy.products, clocks, spread.active, machine), machine);
  share.memory_clocks *= memory_ghz / machine.clock_ghz;
  return {spread, reads, busy, memory_ghz, SimulateSm(pipeline, machine, share, spread.rounds, trace)};
}

}  // namespace

ModelTrace TraceTime(const Pipeline& pipeline, const Machine& machine) {
  ModelTrace trace;
  trace.tiles = Simulate(pipeline, pipeline.tiles, machine, &trace.spans).spread.rounds;
  trace.clock_ghz = PredictTime(pipeline, machine).clock_ghz;
  return trace;
}

namespace {

// A critical path that alternates between several causes while one unit works all the time is bound by that unit. Of
// several, by the one that other schedules relieve least: all have the same MMAs, but may move fewer bytes.
Bound BoundOf(const Prediction& p) {
  const auto largest = static_cast<Bound>(std::max_element(p.by_us.begin(), p.by_us.end()) - p.by_us.begin());
  const auto [tensor_core, l2, memory] = p.busy;
  if (tensor_core < kSaturated) return memory >= kSaturated ? Bound::kMemory : l2 >= kSaturated ? Bound::kL2 : largest;
  // The tensor core also counts as working while it reads operands.
  const auto spent = [&](Bound bound) { return p.by_us[static_cast<size_t>(bound)]; };
  return spent(Bound::kSharedMemory) > spent(Bound::kTensorCore) ? Bound::kSharedMemory : Bound::kTensorCore;
}

Prediction Average(const std::vector<Prediction>& predictions) {
  Prediction average;
  const auto number = static_cast<double>(predictions.size());
  for (const Prediction& p : predictions) {
    average.us += p.us / number;
    for (size_t i = 0; i < kBoundCount; ++i) average.by_us[i] += p.by_us[i] / number;
    average.busy.tensor_core += p.busy.tensor_core / number;
    average.busy.l2 += p.busy.l2 / number;
    average.busy.memory += p.busy.memory / number;
    average.clock_ghz += p.clock_ghz / number;
    average.tensor_share += p.tensor_share / number;
    average.memory_bytes += p.memory_bytes / number;
  }
  average.bound = BoundOf(average);
  return average;
}

// With this number of tiles.
Prediction PredictionOf(const Pipeline& pipeline, double tiles, const Machine& machine) {
  auto [spread, reads, busy, memory_ghz, time] = Simulate(pipeline, tiles, machine, nullptr);
  time.end.Stretch(DriftStretch(pipeline.order, spread.rounds, machine));
  Prediction p;
  p.memory_bytes = reads.bytes + pipeline.stored_bytes;
  p.tensor_share = TimeShare(time.busy.products, time.end.clocks, spread.active, machine);
  // Bytes from L2 take power, too: of schedules with the same MMAs those for which L2 is asked for less have the higher
  // clock.
  const double load_share = TimeShare(time.busy.loads * time.busy.l2_part, time.end.clocks, spread.active, machine);
  p.clock_ghz = ClockAt(p.tensor_share * (1 + machine.load_power * load_share), machine);
  for (size_t i = 0; i < kBoundCount; ++i) {
    p.by_us[i] = time.end.by[i] / (static_cast<Bound>(i) == Bound::kMemory ? memory_ghz : p.clock_ghz) / 1e3;
    p.us += p.by_us[i];
  }
  const auto spend = [&](Bound bound, double us) {
    p.by_us[static_cast<size_t>(bound)] += us;
    p.us += us;
  };
  const Floors floors = FloorsOf(pipeline, machine, spread, reads, busy);
  spend(Bound::kTensorCore, std::max(0.0, floors.busy_us - p.us));
  const double path_us = time.busy.loads / p.clock_ghz / 1e3;
  const double rows_us = pipeline.stored_bytes / pipeline.store_row_bytes * machine.store_row / 1e6;
  const double path_share = pipeline.begins_early ? kEarlyPathShare : kPathShare;
  spend(Bound::kMemory, Together(p.us, floors.memory_us + rows_us + path_share * path_us) - p.us);
  const auto of_clocks = [&](double clocks) { return clocks / p.clock_ghz / 1e3 * pipeline.work; };
  const UnitUse us_of = {.tensor_core = of_clocks(busy.products),
                         .l2 = of_clocks(time.busy.loads),
                         .memory = floors.memory_us * pipeline.work};
  for (double& us : p.by_us) us *= pipeline.work;
  p.us *= pipeline.work;
  p.memory_bytes *= pipeline.work;
  spend(Bound::kPack, MoveTime(pipeline.moves.before, machine));
  spend(Bound::kReductions, MoveTime(pipeline.moves.after, machine));
  spend(Bound::kLaunch, machine.launch_us * pipeline.launches);
  const auto part = [&](double us) { return std::min(1.0, us / p.us); };
  p.busy = {part(us_of.tensor_core), part(us_of.l2), part(us_of.memory)};
  p.bound = BoundOf(p);
  return p;
}

}  // namespace

Prediction PredictTime(const Pipeline& pipeline, const Machine& machine) {
  if (pipeline.likely_tiles.empty()) return PredictionOf(pipeline, pipeline.tiles, machine);
  std::vector<Prediction> predictions;
  for (const double tiles : pipeline.likely_tiles) predictions.push_back(PredictionOf(pipeline, tiles, machine));
  return Average(predictions);
}

Result<Prediction> PredictTime(const Problem& problem, const Schedule& schedule, const target::Target& target,
                               const Machine& machine, std::span<const int64_t> group_sizes) {
  LS_ASSIGN(const compiler::Sketch sketch, compiler::SketchSchedule(problem, schedule, target));
  return PredictTime(PipelineOf(problem, schedule, sketch.program, target, {}, group_sizes), machine);
}

}  // namespace laneshift::autotune
