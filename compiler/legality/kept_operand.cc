#include "compiler/legality/kept_operand.h"

#include "base/text.h"
#include "compiler/contraction/conv_geometry.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

int64_t BlocksOfRun(int64_t run, const Schedule& schedule) { return (run + schedule.tile_k - 1) / schedule.tile_k; }

Error NotKept(std::string message) { return MakeError(ErrorCode::kUnsupported, std::move(message)); }

}  // namespace

KeptOperand KeptOf(const GemmProblem& problem, const Schedule& schedule) {
  return {.columns = problem.n,
          .blocks = BlocksOfRun(problem.k, schedule),
          .matrices = problem.batch,
          .matrices_key = "batch"};
}

KeptOperand KeptOf(const ConvProblem& problem, const Schedule& schedule) {
  const ConvGeometry geometry = GeometryOf(problem, schedule);
  const int64_t runs = geometry.channels * geometry.taps / geometry.run;
  return {.columns = geometry.filters,
          .blocks = runs * BlocksOfRun(geometry.run, schedule),
          .matrices = problem.groups,
          .matrices_key = "groups"};
}

Status CheckKept(const KeptOperand& b, const Schedule& s) {
  if (s.b_keep == 0) return Ok();
  if (b.matrices > 1)
    return NotKept(Cat("b_keep keeps one matrix of B, and ", b.matrices_key, "=", b.matrices, "; use b_keep=0"));
  const bool by_rows = s.raster == 1 && s.split_k == 1 && s.scheduler == Scheduler::kStatic;
  if (b.columns > s.tile_n && !by_rows)
    return NotKept(Cat("with b_keep all tiles of a CTA have the same columns, and n=", b.columns,
                       " is more than tile n=", s.tile_n,
                       "; use a wider tile, or raster=1 split_k=1 scheduler=static"));
  if (s.cluster_n > 1) return NotKept(Cat("with b_keep CTAs lie along m; use cluster=", s.cluster_m, "x1 or b_keep=0"));
  if (b.blocks <= s.b_keep) return Ok();
  return NotKept(Cat("b_keep=", s.b_keep, " blocks of B are fewer than the ", b.blocks, " of K; use b_keep=", b.blocks,
                     " or b_keep=0"));
}

}  // namespace laneshift::compiler
