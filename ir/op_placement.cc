#include "ir/op_placement.h"

#include "base/text.h"
#include "ir/program_text.h"
#include "ir/role_verifier.h"

namespace laneshift::ir {
namespace {

using base::Cat;
constexpr uint32_t Bit(RoleKind kind) { return 1u << static_cast<int>(kind); }

}  // namespace

Status CheckPlacement(const Program& program, const target::Target& target, const Role& role, const Op& op) {
  const OpInfo& row = InfoOf(op.kind);
  const bool lowered = program.stage == Stage::kLowered;
  if (row.stages == (lowered ? StageSet::kScheduled : StageSet::kLowered)) {
    return BrokenRule(6, Cat("it is not legal in a ", NameOf(program.stage), " program"));
  }
  if (row.needs != target::Feature::kNone && !target.Has(row.needs))
    return BrokenRule(6, Cat(target.name, " has no such instruction"));
  if ((row.roles & Bit(role.kind)) == 0)
    return BrokenRule(6, Cat("it is not legal in a role of kind ", NameOf(role.kind)));
  if (row.category == OpCategory::kMma && row.executor == Executor::kOneThread && role.leader != program.ctas - 1)
    return BrokenRule(5, "only the leader of a pair issues MMAs");
  if (row.executor == Executor::kOneThread && !role.elected)
    return BrokenRule(6, "it is for one thread; the role is not elected");
  if (row.executor == Executor::kWarps && role.elected)
    return BrokenRule(6, "it is for whole warps; the role is elected");
  const bool by_warpgroup = op.kind == OpKind::kAccRead || op.kind == OpKind::kMmaRegisters ||
                            op.kind == OpKind::kAccRegisters || op.kind == OpKind::kBlockStore;
  if (by_warpgroup && (role.first_warp % 4 != 0 || role.warps % 4 != 0)) {
    return BrokenRule(6, Cat("warps ", role.first_warp, "+", role.warps, " are not whole, aligned warpgroups"));
  }
  return Ok();
}

}  // namespace laneshift::ir
