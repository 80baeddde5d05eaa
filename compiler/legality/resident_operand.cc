#include "compiler/legality/resident_operand.h"

#include "base/text.h"
#include "compiler/legality/schedule_facts.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

}  // namespace

ResidentOperand ResidentOf(const Contraction& contraction, const Schedule& schedule) {
  return {.columns = contraction.n,
          .blocks = contraction.Blocks(schedule),
          .matrices = contraction.batch,
          .matrices_key = contraction.batch_name};
}

Status CheckResident(const ResidentOperand& b, const Schedule& s) {
  if (s.b_keep == 0) return Ok();
  if (b.matrices > 1)
    return Refused(Cat("b_keep keeps one matrix of B, and ", b.matrices_key, "=", b.matrices, "; use b_keep=0"));
  const bool by_rows = s.raster == 1 && s.split_k == 1 && s.scheduler == Scheduler::kStatic;
  if (b.columns > s.tile_n && !by_rows)
    return Refused(Cat("with b_keep all tiles of a CTA have the same columns, and n=", b.columns,
                       " is more than tile n=", s.tile_n,
                       "; use a wider tile, or raster=1 split_k=1 scheduler=static"));
  if (s.cluster_n > 1)
    return Refused(Cat("with b_keep a cluster extends only along m; use cluster=", s.cluster_m, "x1 or b_keep=0"));
  if (b.blocks <= s.b_keep) return Ok();
  return Refused(Cat("b_keep=", s.b_keep, " blocks of B are fewer than the ", b.blocks, " of K; use b_keep=", b.blocks,
                     " or b_keep=0"));
}

}  // namespace laneshift::compiler
