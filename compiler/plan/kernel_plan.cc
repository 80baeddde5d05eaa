#include "compiler/plan/kernel_plan.h"

#include <algorithm>
#include <utility>

#include "compiler/plan/factor_packing.h"
#include "compiler/plan/packing.h"
#include "compiler/plan/reductions.h"
#include "compiler/plan/slice_sums.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

// Decides the launches of one plan.
class KernelPlanner {
 public:
  KernelPlanner(const Problem& problem, const Schedule& schedule, const target::Target& target,
                const GridLimits& limits)
      : problem_(problem),
        schedule_(schedule),
        target_(target),
        limits_(limits),
        contractions_(ContractionsOf(problem, schedule)) {}

  Result<KernelPlan> Plan(std::vector<PassDump>* dumps) && {
    LS_ASSIGN(ir::Program program, BuildProgram(problem_, schedule_, target_, dumps));
    most_ = std::max(1, limits_.sm_count / program.ClusterSize());
    if (limits_.resident_clusters) {
      LS_ASSIGN(most_, limits_.resident_clusters(program));
    }
    PlacePartials(program);
    const size_t last = contractions_ - 1;
    for (size_t i = 0; i < last; ++i) {
      LS_ASSIGN(PlannedLaunch product, MakeProduct(i, program));
      plan_.launches.push_back(std::move(product));
    }
    LS_ASSIGN(PlannedLaunch product, MakeProduct(last, std::move(program)));
    const std::vector<OrderedReduction> reductions =
        ReductionsOf(problem_, schedule_, product.program, plan_.workspace);
    for (const OrderedReduction& reduction : reductions)
      PlaceInWorkspace(product.params, reduction.base, reduction.begin);
    plan_.launches.push_back(std::move(product));
    LS_TRY(AddSliceSums());
    for (const ReductionPass& pass : PassesOf(reductions, plan_.workspace)) LS_TRY(AddReduction(pass));
    return std::move(plan_);
  }

 private:
  WorkDivision DivisionOf(const Contraction& contraction) const {
    return DivideWork(PlanWork(contraction, schedule_), most_);
  }

  // Of split-K: the launches of the main kernel use it one after the other.
  void PlacePartials(const ir::Program& program) {
    if (program.FindParam(ir::Binding::kWorkspace) == nullptr) return;
    int64_t partials = 0;
    for (size_t i = 0; i < contractions_; ++i)
      partials = std::max(partials, DivisionOf(ContractionOf(problem_, schedule_, i)).partials);
    plan_.workspace.Add(WorkspaceUse::kSplitK, static_cast<size_t>(ir::WorkspaceOf(program).Bytes(partials)));
  }

  // The main kernel for one contraction, after what it needs was added.
  Result<PlannedLaunch> MakeProduct(size_t number, ir::Program program) {
    const Contraction contraction = ContractionOf(problem_, schedule_, number);
    PlannedLaunch product{
        .purpose = LaunchPurpose::kMain,
        .repeats = number > 0,
        .overlaps = contraction.taps == FilterTaps::kWindows || (contraction.follows && program.OverlapsLaunches()),
        .params = BindParams(contraction, schedule_, program),
        .geometry = GeometryOf(program, DivisionOf(contraction))};
    product.program = std::move(program);
    for (const PackStep& step : PackStepsOf(contraction, schedule_)) LS_TRY(AddPack(step, product));
    if (PacksFactors(contraction, schedule_)) LS_TRY(AddFactorPack(contraction, product));
    return product;
  }

  // The copies of operands, which the main kernel then reads.
  Status AddPack(const PackStep& step, PlannedLaunch& product) {
    const auto& [contraction, schedule] = step;
    LS_ASSIGN(ir::Program program, BuildPack(contraction, schedule, target_));
    PlannedLaunch pack{.purpose = LaunchPurpose::kPack,
                       .repeats = product.repeats,
                       .params = BindParams(contraction, schedule, program),
                       .geometry = PackLaunch(contraction, schedule, program, limits_.sm_count)};
    bool first = true;
    for (const ir::Operand operand : kPackableOperands) {
      if (!IsPacked(schedule, operand)) continue;
      const auto bytes = static_cast<size_t>(PackedBytes(contraction, schedule, operand));
      const size_t begin = plan_.workspace.Add(WorkspaceUse::kPackedCopy, bytes);
      PlaceInWorkspace(product.params, ir::BaseOf(operand), begin);
      // The kernel finds the second copy after the first.
      if (std::exchange(first, false)) PlaceInWorkspace(pack.params, ir::Binding::kWorkspace, begin);
    }
    pack.program = std::move(program);
    plan_.launches.push_back(std::move(pack));
    return Ok();
  }

  // The blocks of scale factors, which the main kernel then reads.
  Status AddFactorPack(const Contraction& contraction, PlannedLaunch& product) {
    LS_ASSIGN(ir::Program program, BuildFactorPack(contraction, schedule_, target_));
    PlannedLaunch pack{.purpose = LaunchPurpose::kPack,
                       .repeats = product.repeats,
                       .params = BindParams(contraction, schedule_, program),
                       .geometry = FactorPackLaunch(contraction, program, limits_.sm_count)};
    // The kernel finds the blocks of B after those of A, in one region.
    const auto bytes_of = [&](ir::Operand operand) {
      return static_cast<size_t>(PackedFactorBytes(contraction, schedule_, operand));
    };
    const size_t of_a = bytes_of(ir::Operand::kA), of_b = bytes_of(ir::Operand::kB);
    const size_t begin = plan_.workspace.Add(WorkspaceUse::kPackedCopy, of_a + of_b);
    PlaceInWorkspace(pack.params, ir::Binding::kWorkspace, begin);
    for (const ir::Operand operand : kPackableOperands) {
      if (!PacksFactors(contraction, schedule_, operand)) continue;
      const size_t place = begin + (operand == ir::Operand::kB ? of_a : 0);
      PlaceInWorkspace(product.params, operand, ir::OperandComponent::kScales, place);
      PlaceInWorkspace(product.params, ir::OfOperand(ir::BindingFamily::kBaseScale, operand), place);
    }
    pack.program = std::move(program);
    plan_.launches.push_back(std::move(pack));
    return Ok();
  }

  // The partial sums of split-K slices, with the grid of the main kernel.
  Status AddSliceSums() {
    const Contraction contraction = ContractionOf(problem_, schedule_);
    if (!contraction.AddsSlicesApart(schedule_) || DivisionOf(contraction).partials == 0) return Ok();
    LS_ASSIGN(ir::Program program, BuildSliceSums(contraction, schedule_, target_));
    PlannedLaunch launch{.purpose = LaunchPurpose::kReduce,
                         .overlaps = true,
                         .params = BindParams(contraction, schedule_, program),
                         .geometry = GeometryOf(program, DivisionOf(contraction))};
    launch.program = std::move(program);
    plan_.launches.push_back(std::move(launch));
    return Ok();
  }

  Status AddReduction(const ReductionPass& pass) {
    LS_ASSIGN(ir::Program program, BuildReduction(pass, target_));
    PlannedLaunch launch{.purpose = pass.fold > 0 ? LaunchPurpose::kFold : LaunchPurpose::kReduce,
                         .params = BindReduction(pass, program),
                         .geometry = ReductionLaunch(pass, program, limits_.sm_count)};
    launch.program = std::move(program);
    plan_.launches.push_back(std::move(launch));
    return Ok();
  }

  const Problem& problem_;
  const Schedule& schedule_;
  const target::Target& target_;
  const GridLimits& limits_;
  const size_t contractions_;
  KernelPlan plan_;
  int most_ = 1;  // clusters of the main kernel at one time
};

// An operand is read once, and its copy written once, which is as large but for rows of all taps.
MoveWork PackMoves(const Problem& problem, const Schedule& schedule) {
  MoveWork work;
  if (!PacksAny(schedule) && !MayPackFactors(problem)) return work;
  const Contraction contraction = ContractionOf(problem, schedule);
  const bool packs_factors = PacksFactors(contraction, schedule);
  for (const ir::Operand operand : kPackableOperands) work.bytes += 2 * BytesToPack(problem, schedule, operand);
  if (work.bytes == 0 && !packs_factors) return work;
  const size_t steps = PackStepsOf(contraction, schedule).size() + (packs_factors ? 1 : 0);
  work.kernels = static_cast<int>(ContractionsOf(problem, schedule) * steps);
  if (contraction.PacksTaps()) {
    constexpr ir::Operand kPixels = ir::Operand::kB;
    work.bytes += PackedBytes(contraction, schedule, kPixels) - BytesToPack(problem, schedule, kPixels);
  }
  for (const ir::Operand operand : kPackableOperands) {
    if (!PacksFactors(contraction, schedule, operand)) continue;
    const ir::OperandRole role = operand == ir::Operand::kA ? ir::OperandRole::kScaleA : ir::OperandRole::kScaleB;
    work.bytes += static_cast<int64_t>(ir::Stored(problem, role).Bytes());
    work.bytes += PackedFactorBytes(contraction, schedule, operand);
  }
  return work;
}

}  // namespace

Result<KernelPlan> PlanKernels(const Problem& problem, const Schedule& schedule, const target::Target& target,
                               const GridLimits& limits, std::vector<PassDump>* dumps) {
  return KernelPlanner(problem, schedule, target, limits).Plan(dumps);
}

LaunchGeometry GeometryOf(const ir::Program& product, const WorkDivision& division) {
  const auto cluster = static_cast<unsigned>(product.ClusterSize());
  return {.grid = static_cast<unsigned>(division.clusters) * cluster,
          .cluster = cluster,
          .threads = static_cast<unsigned>(product.threads),
          .smem_bytes = static_cast<unsigned>(product.smem_bytes)};
}

PlanMoves MovesOf(const Problem& problem, const Schedule& schedule, const ir::Program& product) {
  PlanMoves moves{.before = PackMoves(problem, schedule)};
  const Contraction contraction = ContractionOf(problem, schedule);
  if (contraction.AddsSlicesApart(schedule)) {
    const WorkPlan work = PlanWork(contraction, schedule);
    moves.after = {.bytes = work.Tiles() * work.slices * ir::WorkspaceOf(product).PartialBytes(), .overlapped = 1};
  }
  if (!OrdersReductions(problem)) return moves;
  PlanWorkspace workspace;
  for (const ReductionPass& pass : PassesOf(ReductionsOf(problem, schedule, product, workspace), workspace)) {
    ++moves.after.kernels;
    for (const OrderedReduction& reduction : pass.from) moves.after.bytes += reduction.Bytes();
    for (const OrderedReduction& reduction : pass.to) moves.after.bytes += reduction.Bytes();
  }
  return moves;
}

PlanMoves LeastMovesOf(const Problem& problem, const Schedule& schedule) {
  return {.before = PackMoves(problem, schedule), .after = {.kernels = OrdersReductions(problem) ? 1 : 0}};
}

}  // namespace laneshift::compiler
