#include "autotune/space.h"

#include <algorithm>

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
  Border border = Border::kZeros;
};
std::vector<Variant> VariantsOf(const GemmProblem&, const ScheduleConstraint&, const Target&) {
  return {{Reuse::kNone, LoadPath::kTma, {64, 128}}};
}
std::vector<Variant> VariantsOf(const ConvProblem& problem, const ScheduleConstraint& constraint,
                                const Target& target) {
  // A mode that was asked for is tried for every filter, and its own rule refuses it.
  const Reuse asked = constraint.Apply(Schedule{.reuse = Reuse::kIm2col}).reuse;
  if (asked > Reuse::kIm2col) return {{asked, LoadPath::kTma, {32, 64, 128}}};
  // Blocks of fewer channels than a swizzle span waste nothing where there are no more.
  std::vector<int> depths = {64, 128};
  for (const int depth : {32, 16}) {
    if (problem.c / problem.groups <= depth) depths = {depth};
  }
  std::vector<Variant> variants = {{Reuse::kIm2col, LoadPath::kTma, depths},
                                   {Reuse::kIm2col, LoadPath::kCopy, {64, 128}}};
  if (problem.filter[kWidth] == 1) return variants;
  if (depths[0] < 32) depths = {32};
  variants.insert(variants.begin(), {Reuse::kRowOffset, LoadPath::kTma, depths});
  if (!target.Has(Feature::kTensorMemory)) return variants;
  variants.push_back({Reuse::kLaneShift, LoadPath::kTma, {64}});
  // No position of the walk is lost to a halo.
  const bool open = constraint.Apply(Schedule{.reuse = Reuse::kRowOffset}).reuse == Reuse::kRowOffset;
  if (open && compiler::CentreColumn(problem) >= 0)
    variants.push_back({Reuse::kRowOffset, LoadPath::kTma, depths, Border::kMask});
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
                   .reuse = variant.reuse,
                   .border = variant.border};
    shape = constraint.Apply(WithPaths(problem, constraint.Apply(shape)));
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  };
  for (const Variant& variant : VariantsOf(problem, constraint, target)) {
    // Lanes are moved and left out in tiles of all of them: a lower tile is no schedule, and its refusal would hide a
    // better reason.
    const Schedule asked = constraint.Apply({.reuse = variant.reuse, .border = variant.border});
    const bool needs_lanes = asked.reuse == Reuse::kLaneShift || asked.border == Border::kMask;
    for (const int m : {128, 64}) {
      if (needs_lanes && m != 128) continue;
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

}  // namespace

Space EnumerateSchedules(const Problem& problem, const ScheduleConstraint& constraint, const Target& target) {
  Space space;
  for (const Schedule& shape : ShapesOf(problem, constraint, target)) {
    auto footprint = compiler::ValidateSchedule(problem, shape, target);
    if (footprint) {
      space.schedules.push_back(Deepen(shape, *footprint, constraint, target));
    } else {
      space.refused.push_back({shape, std::move(footprint).error()});
    }
  }
  return space;
}

}  // namespace laneshift::autotune
