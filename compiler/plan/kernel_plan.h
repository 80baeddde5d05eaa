// KernelPlan: all kernels that one execution of a problem launches, in order, and the workspace that they share. What
// is launched, with which parameters, and what lies where is decided here; the runtime loads the kernels, fills in the
// caller's addresses and launches.
//
//   pack     copies operands that the TMA cannot address to where it can (compiler/plan/packing.h), or scale factors in
//            rows to blocks (compiler/plan/factor_packing.h)
//   product  the main kernel: the tile program of problem and schedule; once for each contraction of the problem, each
//            after the packing that it needs
//   reduce   adds the partial sums of split-K slices (compiler/plan/slice_sums.h)
//   fold     reduces very many partial rows to few
//   reduce   adds up partial rows in a fixed order (compiler/plan/reductions.h)
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/compile.h"
#include "compiler/contraction/bindings.h"
#include "compiler/plan/plan_workspace.h"
#include "compiler/plan/work_plan.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

enum class LaunchPurpose : uint8_t { kPack, kMain, kFold, kReduce };

struct PlannedLaunch {
  LaunchPurpose purpose{};
  bool repeats = false;              // an earlier launch has the same program, with other parameters
  bool overlaps = false;             // it may run at the same time as the launch before it
  ir::Program program{};             // lowered, with its storage
  std::vector<BoundParam> params{};  // of the program, in order; those in the workspace have their offset
  LaunchGeometry geometry{};
};

struct KernelPlan {
  std::vector<PlannedLaunch> launches{};  // in order on one stream; the main kernel is one or several of them
  PlanWorkspace workspace{};              // zero before its first use
};

// Properties of a device that determine the size of grids.
struct GridLimits {
  int sm_count = 1;
  // Clusters of the main kernel that are resident at one time, with one CTA on an SM. Unset: as many as the SMs hold.
  std::function<Result<int>(const ir::Program& product)> resident_clusters{};
};

// Errors as BuildProgram, and those of `resident_clusters`. `dumps`: the main kernel's tile program after each pass.
Result<KernelPlan> PlanKernels(const Problem& problem, const Schedule& schedule, const target::Target& target,
                               const GridLimits& limits, std::vector<PassDump>* dumps = nullptr);

// The grid of the main kernel.
LaunchGeometry GeometryOf(const ir::Program& product, const WorkDivision& division);

// Kernels of a plan that only move memory.
struct MoveWork {
  int kernels = 0;
  int64_t bytes = 0;   // read and written
  int overlapped = 0;  // more kernels, which start while the one before still runs
  bool operator==(const MoveWork&) const = default;
};
// Those before the main kernel and those after it, for estimates: their programs are not built.
struct PlanMoves {
  MoveWork before{}, after{};
};
// `product`: the schedule's program, at any stage.
PlanMoves MovesOf(const Problem& problem, const Schedule& schedule, const ir::Program& product);
// Not more than those of any program of the schedule.
PlanMoves LeastMovesOf(const Problem& problem, const Schedule& schedule);

}  // namespace laneshift::compiler
