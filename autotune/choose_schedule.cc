#include "autotune/choose_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "compiler/compile.h"
#include "compiler/tma_reach.h"

namespace laneshift::autotune {
namespace {

using ir::Operand;
using target::Feature;
using target::Target;

constexpr int kMaxStages = 8;  // more hide no latency that eight blocks in flight do not

// Facts of the estimate, in SM clocks or bytes per SM clock. They order schedules; they do not predict times.
constexpr double kLoadBytesPerClock = 48;   // what one SM draws from L2 while all do
constexpr double kStoreBytesPerClock = 24;  // the epilogue's way out
constexpr double kLoadLatency = 1000;       // from issue to arrival of a bulk copy, under load
constexpr double kShortestBlock = 350;      // barriers, issue and copies of a K block of any size
constexpr double kBlockLatency = 20;        // what a K block adds to the slowest of its parts
constexpr double kTileLatency = 900;        // fill of the pipeline and hand-over of one tile
constexpr int kFullRateRows = 128;          // an MMA with fewer rows takes as long as one with these (tcgen05, M = 64)

double CeilDiv(double a, double b) { return std::ceil(a / b); }

// Clocks until the busiest SM has finished its tiles: K blocks at the slower of the tensor core and the loads, plus the
// epilogue where no next tile hides it.
double EstimateClocks(const GemmProblem& p, const Schedule& s, const Target& target, int sm_count) {
  const double tiles = CeilDiv(static_cast<double>(p.m), s.tile_m) * CeilDiv(static_cast<double>(p.n), s.tile_n) *
                       static_cast<double>(p.batch);
  const double rounds = CeilDiv(tiles, sm_count);
  const double blocks = CeilDiv(static_cast<double>(p.k), s.tile_k);
  const bool tensor_memory = target.Has(Feature::kTensorMemory);
  const double rows = tensor_memory ? std::max(s.tile_m, kFullRateRows) : s.tile_m;
  const double multiply = rows * s.tile_n * s.tile_k / target.mma_macs_per_clock;
  const double load = static_cast<double>((s.tile_m + s.tile_n) * s.tile_k * DataTypeBytes(p.a)) / kLoadBytesPerClock;
  // A stage is taken from the start of its load until the MMA of the block behind it is issued.
  const double ring = (kLoadLatency + load + 2 * multiply) / s.stages;
  const double block = std::max({multiply, load, ring, kShortestBlock}) + kBlockLatency;
  const double epilogue = static_cast<double>(s.tile_m * s.tile_n * DataTypeBytes(p.d)) / kStoreBytesPerClock;
  const double exposed =
      s.acc_stages > 1 ? std::max(0.0, epilogue - blocks * block) * (rounds - 1) + epilogue : epilogue * rounds;
  return rounds * (blocks * block + kTileLatency) + exposed;
}

LoadPath PathFor(const GemmProblem& problem, Operand operand) {
  return compiler::TmaReaches(problem, operand) ? LoadPath::kTma : LoadPath::kCopy;
}

// The space with the constraint put in, legal or not, each once; rings are as short as they may be.
std::vector<Schedule> Shapes(const GemmProblem& problem, const ScheduleConstraint& constraint, const Target& target) {
  const bool tensor_memory = target.Has(Feature::kTensorMemory);
  const StorePath store = compiler::TmaReaches(problem, Operand::kD) ? StorePath::kTma : StorePath::kDirect;
  std::vector<Schedule> shapes;
  for (const int m : {128, 64}) {
    for (const int n : {256, 224, 192, 160, 128, 112, 96, 80, 64, 48, 32, 16}) {
      for (const int k : {64, 128}) {
        for (const int acc : {2, 1}) {
          const Schedule shape = constraint.Apply({.tile_m = m,
                                                   .tile_n = n,
                                                   .tile_k = k,
                                                   .stages = 2,
                                                   .acc_stages = tensor_memory ? acc : 1,
                                                   .math_warpgroups = tensor_memory ? 1 : m / 64,
                                                   .raster = 8,
                                                   .a_load = PathFor(problem, Operand::kA),
                                                   .b_load = PathFor(problem, Operand::kB),
                                                   .d_store = store});
          if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

// The shape with the deepest useful ring that fits beside what else it needs.
Schedule Deepen(const Schedule& shape, const compiler::Footprint& footprint, const ScheduleConstraint& constraint,
                const Target& target) {
  Schedule deep = shape;
  deep.stages += (target.smem_bytes - footprint.smem_bytes) / footprint.stage_bytes;
  deep.stages = std::max(shape.stages, std::min(deep.stages, kMaxStages));
  return constraint.Apply(deep);
}

std::vector<size_t> AscendingClocks(const std::vector<RankedSchedule>& schedules) {
  std::vector<size_t> order(schedules.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return schedules[a].clocks < schedules[b].clocks; });
  return order;
}

}  // namespace

std::vector<RankedSchedule> RankSchedules(const Problem& problem, const ScheduleConstraint& constraint,
                                          const Target& target, int sm_count) {
  std::vector<RankedSchedule> ranked;
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  if (gemm == nullptr) return ranked;
  for (const Schedule& shape : Shapes(*gemm, constraint, target)) {
    const auto footprint = compiler::ValidateSchedule(problem, shape, target);
    if (!footprint) continue;
    const Schedule schedule = Deepen(shape, *footprint, constraint, target);
    ranked.push_back({schedule, EstimateClocks(*gemm, schedule, target, sm_count)});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedSchedule& a, const RankedSchedule& b) { return a.clocks < b.clocks; });
  return ranked;
}

Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint, const Target& target,
                                int sm_count) {
  // The first of RankSchedules, without validating what cannot be first: no ring makes a shape faster than the deepest.
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  if (gemm ==
      nullptr) {  // no space to choose from: the one schedule that the constraint makes, if the compiler takes it
    const Schedule only = constraint.Apply({});
    LS_TRY(compiler::ValidateSchedule(problem, only, target));
    return only;
  }
  std::vector<RankedSchedule> shapes;
  for (const Schedule& shape : Shapes(*gemm, constraint, target)) {
    Schedule deepest = shape;
    deepest.stages = kMaxStages;
    shapes.push_back({shape, EstimateClocks(*gemm, constraint.Apply(deepest), target, sm_count)});
  }
  std::optional<RankedSchedule> best;
  size_t best_index = 0;
  Error reason;
  for (const size_t i : AscendingClocks(shapes)) {
    if (best && shapes[i].clocks > best->clocks) break;
    const auto footprint = compiler::ValidateSchedule(problem, shapes[i].schedule, target);
    if (!footprint) {
      // A shape that keeps every rule and only lacks memory tells most.
      if (reason.code != ErrorCode::kResourceExhausted) reason = footprint.error();
      continue;
    }
    const Schedule schedule = Deepen(shapes[i].schedule, *footprint, constraint, target);
    const double clocks = EstimateClocks(*gemm, schedule, target, sm_count);
    if (best && (clocks > best->clocks || (clocks == best->clocks && i > best_index))) continue;
    best = {schedule, clocks};
    best_index = i;
  }
  if (best) return best->schedule;
  return reason.Within(base::Cat("no schedule fits on ", target.name));
}

}  // namespace laneshift::autotune
