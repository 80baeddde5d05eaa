#include "autotune/choose_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "autotune/work.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "compiler/conv_geometry.h"
#include "compiler/conv_reach.h"
#include "compiler/tma_reach.h"

namespace laneshift::autotune {
namespace {

using ir::Operand;
using target::Feature;
using target::Target;

constexpr int kLeastReuseStages = 3;  // activations in use, being released, and on their way
constexpr int kMaxStages = 8;         // more hide no latency that eight blocks in flight do not

// Facts of the estimate, in SM clocks or bytes per SM clock. They order schedules; they do not predict times.
constexpr double kLoadBytesPerClock = 48;   // what one SM draws from L2 while all do
constexpr double kStoreBytesPerClock = 24;  // the epilogue's way out
constexpr double kLoadLatency = 1000;       // from issue to arrival of a bulk copy, under load
constexpr double kShortestBlock = 350;      // barriers, issue and copies of a K block of any size
constexpr double kBlockLatency = 20;        // what a K block adds to the slowest of its parts
constexpr double kTileLatency = 900;        // fill of the pipeline and hand-over of one tile
constexpr int kFullRateRows = 128;          // an MMA with fewer rows takes as long as one with these (tcgen05, M = 64)

constexpr double kGatherPerClock = 0.5;  // accesses of the threads that gather an operand

double CeilDiv(double a, double b) { return std::ceil(a / b); }

// Clocks until the busiest SM has finished its tiles: K blocks at the slower of the tensor core and the loads, plus the
// epilogue where no next tile hides it.
double EstimateClocks(const Problem& problem, const Schedule& s, const Target& target, int sm_count) {
  const Work work = WorkOf(problem, s);
  const double rounds = CeilDiv(work.tiles, sm_count);
  const bool tensor_memory = target.Has(Feature::kTensorMemory);
  const double rows = tensor_memory ? std::max(s.tile_m, kFullRateRows) : s.tile_m;
  const double multiply = rows * s.tile_n * s.tile_k / target.mma_macs_per_clock;
  const double load = work.block_bytes / kLoadBytesPerClock + work.gathered / kGatherPerClock;
  // A stage is taken from the start of its load until the MMA of the block behind it is issued.
  const int stages = s.reuse > Reuse::kIm2col ? s.filter_stages : s.stages;
  const double ring = (kLoadLatency + load + 2 * multiply) / stages;
  const double block = std::max({multiply, load, ring, kShortestBlock}) + kBlockLatency;
  const double epilogue = s.tile_m * s.tile_n * work.element_bytes_d / kStoreBytesPerClock;
  const double exposed =
      s.acc_stages > 1 ? std::max(0.0, epilogue - work.blocks * block) * (rounds - 1) + epilogue : epilogue * rounds;
  return rounds * (work.blocks * block + kTileLatency) + exposed;
}

// What a shape leaves open is how its operands come and go: by bulk copies wherever they can.
Schedule WithPaths(const GemmProblem& problem, Schedule shape) {
  const auto path = [&](Operand operand) {
    return compiler::TmaReaches(problem, operand) ? LoadPath::kTma : LoadPath::kCopy;
  };
  shape.a_load = path(Operand::kA);
  shape.b_load = path(Operand::kB);
  shape.d_store = compiler::TmaReaches(problem, Operand::kD) ? StorePath::kTma : StorePath::kDirect;
  return shape;
}
// Threads gather x where the shape says so.
Schedule WithPaths(const ConvProblem& problem, Schedule shape) {
  const auto geometry = compiler::GeometryOf(problem, shape);
  const auto reaches = [&](Operand operand) -> bool {
    return static_cast<bool>(compiler::TmaReaches(problem, geometry, shape, operand));
  };
  shape.b_load = reaches(Operand::kB) ? LoadPath::kTma : LoadPath::kCopy;
  // Without the TMA, along rows if they are whole 16 bytes.
  const int whole = 16 / static_cast<int>(DataTypeBytes(problem.y));
  const bool rows = compiler::AccessWidth(problem, Operand::kD, whole) == whole;
  shape.d_store = reaches(Operand::kD) ? StorePath::kTma : rows ? StorePath::kRows : StorePath::kDirect;
  return shape;
}

// What shapes of a kind of problem vary beside the tile and the rings.
struct Variant {
  Reuse reuse;
  LoadPath a_load;
  std::vector<int> depths;  // of a K block
};
std::vector<Variant> VariantsOf(const GemmProblem&) { return {{Reuse::kNone, LoadPath::kTma, {64, 128}}}; }
std::vector<Variant> VariantsOf(const ConvProblem& problem) {
  // Blocks of fewer channels than a swizzle span waste nothing where there are no more.
  std::vector<int> depths = {64, 128};
  for (const int depth : {32, 16}) {
    if (problem.c / problem.groups <= depth) depths = {depth};
  }
  std::vector<Variant> variants = {{Reuse::kIm2col, LoadPath::kTma, depths},
                                   {Reuse::kIm2col, LoadPath::kCopy, {64, 128}}};
  if (problem.filter[kWidth] > 1) variants.insert(variants.begin(), {Reuse::kRowOffset, LoadPath::kTma, {64}});
  return variants;
}

// The space with the constraint put in, legal or not, each once; rings are as short as they may be.
template <typename Kind>
std::vector<Schedule> Shapes(const Kind& problem, const ScheduleConstraint& constraint, const Target& target) {
  const bool tensor_memory = target.Has(Feature::kTensorMemory);
  std::vector<Schedule> shapes;
  const auto add = [&](const Variant& variant, int m, int n, int k, int acc) {
    Schedule shape{.tile_m = m,
                   .tile_n = n,
                   .tile_k = k,
                   .stages = variant.reuse > Reuse::kIm2col ? kLeastReuseStages : 2,
                   .acc_stages = tensor_memory ? acc : 1,
                   .math_warpgroups = tensor_memory ? 1 : m / 64,
                   .a_load = variant.a_load,
                   .reuse = variant.reuse};
    shape = constraint.Apply(WithPaths(problem, constraint.Apply(shape)));
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  };
  for (const Variant& variant : VariantsOf(problem)) {
    for (const int m : {128, 64}) {
      for (const int n : {256, 224, 192, 160, 128, 112, 96, 80, 64, 48, 32, 16}) {
        for (const int k : variant.depths) {
          for (const int acc : {2, 1}) add(variant, m, n, k, acc);
        }
      }
    }
  }
  return shapes;
}
std::vector<Schedule> ShapesOf(const Problem& problem, const ScheduleConstraint& constraint, const Target& target) {
  return std::visit([&](const auto& kind) { return Shapes(kind, constraint, target); }, problem);
}

// The shape with the deepest useful ring that fits beside what else it needs.
Schedule Deepen(const Schedule& shape, const compiler::Footprint& footprint, const ScheduleConstraint& constraint,
                const Target& target) {
  Schedule deep = shape;
  int spare = target.smem_bytes - footprint.smem_bytes;
  const auto deepen = [&](int& stages, int bytes) {
    const int more = std::clamp(spare / bytes, 0, std::max(0, kMaxStages - stages));
    stages += more;
    spare -= more * bytes;
  };
  if (footprint.filter_stage_bytes > 0 && shape.reuse > Reuse::kIm2col)
    deepen(deep.filter_stages, footprint.filter_stage_bytes);
  deepen(deep.stages, footprint.stage_bytes);
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
  for (const Schedule& shape : ShapesOf(problem, constraint, target)) {
    const auto footprint = compiler::ValidateSchedule(problem, shape, target);
    if (!footprint) continue;
    const Schedule schedule = Deepen(shape, *footprint, constraint, target);
    ranked.push_back({schedule, EstimateClocks(problem, schedule, target, sm_count)});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedSchedule& a, const RankedSchedule& b) { return a.clocks < b.clocks; });
  return ranked;
}

Result<Schedule> ChooseSchedule(const Problem& problem, const ScheduleConstraint& constraint, const Target& target,
                                int sm_count) {
  // The first of RankSchedules, without validating what cannot be first: no ring makes a shape faster than the deepest.
  std::vector<RankedSchedule> shapes;
  for (const Schedule& shape : ShapesOf(problem, constraint, target)) {
    Schedule deepest = shape;
    deepest.stages = deepest.filter_stages = kMaxStages;
    shapes.push_back({shape, EstimateClocks(problem, constraint.Apply(deepest), target, sm_count)});
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
    const double clocks = EstimateClocks(problem, schedule, target, sm_count);
    if (best && (clocks > best->clocks || (clocks == best->clocks && i > best_index))) continue;
    best = {schedule, clocks};
    best_index = i;
  }
  if (best) return best->schedule;
  return reason.Within(base::Cat("no schedule fits on ", target.name));
}

}  // namespace laneshift::autotune
