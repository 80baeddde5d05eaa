#include "compiler/legality/check_groups.h"

#include "base/text.h"
#include "compiler/legality/schedule_facts.h"
#include "ir/epilogue_steps.h"

namespace laneshift::compiler {
namespace {

// Rows of A that an index vector names. Bulk copies bring each of them to a separate span.
Status CheckGather(const Contraction& contraction, const Schedule& s) {
  constexpr int kSpanBytes = 128;
  if (!contraction.a.indexed || IsByThreads(s.a_load)) return Ok();
  if (const int bytes = contraction.TileBytes(s.tile_k); bytes % kSpanBytes != 0)
    return Refused(base::Cat("bulk copies of single rows of A are of spans of ", kSpanBytes,
                             " bytes, and tile k=", s.tile_k, " has ", bytes,
                             "; use k=", 8 * kSpanBytes / contraction.OperandBits(), ", or a_load=copy"));
  if (IsByThreads(s.b_load))
    return Refused(
        "the warps that gather rows of A by bulk copies are those that would copy B; use b_load=tma or pack, or "
        "a_load=copy");
  return Ok();
}

// Rows of groups whose sizes only the device knows.
Status CheckGroupsOfRows(const Contraction& contraction, const Schedule& s) {
  if (s.d_store == StorePath::kTma && contraction.d.indexed)
    return Refused(
        "rows=scatter puts rows of a tile anywhere, and a bulk store writes adjacent ones; use d_store=rows or "
        "d_store=direct");
  if (s.scheduler != Scheduler::kStatic)
    return Refused(
        "only the device knows how many tiles groups have, a grid of one cluster for each needs the number; "
        "use scheduler=static");
  if (s.split_k > 1) return Refused("only the device knows which tiles of groups are left over; use split_k=1");
  if (s.cluster_k > 1) return Refused("tiles of groups are not cut along K; use cluster_k=1");
  if (s.b_keep > 0) return Refused("tiles of one CTA are of several groups, each with its own B; use b_keep=0");
  return Ok();
}

// Parts of K: one CTA adds up each tile, block after block, however many there are.
Status CheckPartsOfK(const Schedule& s) {
  if (s.scheduler != Scheduler::kStatic)
    return Refused(
        "parts of K are found in the order of tiles, which launch control does not keep; use scheduler=static");
  if (DividesK(s)) return Refused("only the device knows how long parts of K are; use split_k=1 cluster_k=1");
  if (s.b_keep > 0) return Refused("tiles of one CTA are of several parts of K; use b_keep=0");
  return Ok();
}

}  // namespace

Status CheckGroups(const Contraction& contraction, const Schedule& schedule) {
  if (contraction.grouped) {
    LS_TRY(CheckGather(contraction, schedule));
    return CheckGroupsOfRows(contraction, schedule);
  }
  return contraction.parts_of_k ? CheckPartsOfK(schedule) : Ok();
}

Status CheckMerged(const Contraction& contraction, const Schedule& s) {
  if (s.merge_groups == 1 || s.reuse == Reuse::kDirect) return Ok();
  if (contraction.a.kind != SourceKind::kPixels)
    return Refused("merge_groups is for groups of channels of a convolution; use merge_groups=1");
  if (contraction.merged != s.merge_groups)
    return Refused(base::Cat("merge_groups=", s.merge_groups, " does not divide groups=", contraction.ChannelGroups()));
  if (contraction.geometry.HasPatches())
    return Refused("the columns of a row are pixels of one group of channels; use merge_groups=1");
  if (ir::HasSplitGateUp(contraction.epilogue()))
    return Refused("gates are the first half of a group's filters, which merge_groups would mix; use merge_groups=1");
  if (contraction.IsDiagonal() && s.d_store != StorePath::kDirect)
    return Refused("with merge_groups only the blocks of one group's channels are stored; use d_store=direct");
  return Ok();
}

}  // namespace laneshift::compiler
