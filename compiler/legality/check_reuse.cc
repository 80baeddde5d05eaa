#include "compiler/legality/check_reuse.h"

#include <cstdlib>

#include "base/text.h"
#include "compiler/legality/schedule_facts.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using target::Target;

constexpr int kMostColumns = 16;  // of a filter whose columns are unrolled

// What MMAs that shift the lanes of A need of the device, and of the filter.
Status CheckFusedShifts(const ConvGeometry& geometry, const Target& target) {
  const target::TensorFacts& facts = target.tensor_facts;
  const bool whole = facts.shift_scope == target::ShiftScope::kGroups || facts.shift_scope == target::ShiftScope::kCta;
  if (!whole || facts.ashift_time == target::AshiftTime::kOther) {
    return Refused(Cat("shift=fused: tcgen05.mma.ashift of this device ",
                       whole ? "moves rows neither before nor after their product" : "does not move all lanes",
                       " (see laneshift doctor); use shift=separate"));
  }
  if (geometry.stale < ir::kPartitionLanes) return Ok();
  return Refused(
      Cat("shift=fused leaves ", geometry.stale, " stale lanes of each ", ir::kPartitionLanes, "; use shift=separate"));
}

// What a chain of shifts and refreshes needs of the device.
Status CheckShifts(const Target& target) {
  if (target.tensor_facts.cp_4x256b_lane != target::RefreshLane::kOffset) {
    return Refused(Cat(
        "reuse=lane_shift refreshes the last of each 32 lanes, and tcgen05.cp.4x256b of this device ",
        target.tensor_facts.cp_4x256b_lane == target::RefreshLane::kIgnored ? "ignores the lane" : "misplaces its rows",
        " (see laneshift doctor); use reuse=row_offset"));
  }
  if (target.tensor_facts.shift_scope == target::ShiftScope::kOther) {
    return Refused(
        "reuse=lane_shift: tcgen05.shift of this device moves other lanes than any known reading of the "
        "manual says (see laneshift doctor); use reuse=row_offset");
  }
  return Ok();
}

Status CheckLaneShift(const Contraction& contraction, const Schedule& s, const Target& target) {
  const ConvGeometry& geometry = contraction.geometry;
  if (!target.mma.moves_lanes)
    return Refused(Cat("reuse=lane_shift shifts operands in Tensor Memory, which ", target.name,
                       " has not; use reuse=row_offset"));
  if (s.ctas != 1) return Refused("reuse=lane_shift shifts the lanes of one CTA; use ctas=1 or reuse=row_offset");
  if (s.shift == ShiftForm::kFused && s.cluster_n != 1)
    return Refused(
        Cat("shift=fused loads tiles in four parts, which CTAs along n do not share; use cluster=", s.cluster_m, "x1"));
  LS_TRY(s.shift == ShiftForm::kFused ? CheckFusedShifts(geometry, target) : CheckShifts(target));
  if (s.tile_m != ir::kTensorLanes)
    return Refused(Cat("reuse=lane_shift needs all ", ir::kTensorLanes, " lanes; use tile m=", ir::kTensorLanes,
                       " instead of ", s.tile_m));
  const int whole = 8 * 128 / contraction.OperandBits();
  if (s.shift == ShiftForm::kSeparate && s.tile_k % whole != 0)
    return Refused(Cat("reuse=lane_shift refreshes single rows of 128 bytes; with tile k=", s.tile_k, " use k=", whole,
                       " or ", 2 * whole));
  if (geometry.phases.size() * 2 > ir::kMostTilesOfSlot)
    return Refused(
        Cat("reuse=lane_shift with stride ", geometry.stride[kWidth], " needs too many tiles; use reuse=im2col"));
  return Ok();
}

// The rules of masked borders: the lanes of a tile are positions of the image's own rows.
Status CheckMask(const ConvGeometry& geometry, const Schedule& s, const Target& target) {
  if (!target.mma.moves_lanes)
    return Refused(
        Cat("border=mask disables lanes in Tensor Memory, which ", target.name, " has not; use border=zeros"));
  if (s.ctas != 1) return Refused("border=mask disables lanes of one CTA; use ctas=1 or border=zeros");
  if (s.tile_m != ir::kTensorLanes)
    return Refused(
        Cat("border=mask maps rows of the tile to lanes; use tile m=", ir::kTensorLanes, " instead of ", s.tile_m));
  if (s.reuse == Reuse::kLaneShift && s.shift == ShiftForm::kFused)
    return Refused(
        "border=mask begins the chains of a tile at two rows, and shift=fused loads tiles in four parts; use "
        "shift=separate or border=zeros");
  if (!geometry.masks_border) {
    return Refused(
        Cat("border=mask needs output rows as long as the image's, at stride 1, and a filter column on the "
            "output pixel; here rows of ",
            geometry.input[kWidth], " give ", geometry.output[kWidth], " at stride ", geometry.stride[kWidth],
            "; use border=zeros"));
  }
  for (const ConvGeometry::Column& column : geometry.columns) {
    if (std::abs(column.border_offset) >= ir::kPartitionLanes)
      return Refused(Cat("border=mask: a filter reach of ", std::abs(column.border_offset),
                         " columns outside the image exceeds the limit of ", ir::kPartitionLanes - 1,
                         "; use border=zeros"));
  }
  const int64_t of_image = geometry.positions / geometry.images;
  if (geometry.pad[kWidth] <= of_image) return Ok();
  return Refused(Cat("border=mask: images of ", of_image, " pixels are smaller than the padding; use border=zeros"));
}

}  // namespace

Status CheckForms(const Schedule& s) {
  if (s.shift != ShiftForm::kSeparate && s.reuse != Reuse::kLaneShift)
    return Refused("shift=fused is for operands shifted in Tensor Memory; use reuse=lane_shift or shift=separate");
  if (s.border != Border::kZeros && s.reuse != Reuse::kLaneShift && s.reuse != Reuse::kRowOffset)
    return Refused("border=mask is for reused activations; use reuse=row_offset or border=zeros");
  return Ok();
}

Status CheckReuse(const Contraction& contraction, const Schedule& s, const Target& target) {
  const ConvGeometry& geometry = contraction.geometry;
  if (s.a_load != LoadPath::kTma)
    return Refused("reuse displaces tiles that the TMA has loaded; use a_load=tma or reuse=im2col");
  if (s.reuse == Reuse::kLaneShift) LS_TRY(CheckLaneShift(contraction, s, target));
  if (s.border == Border::kMask) LS_TRY(CheckMask(geometry, s, target));
  const int least = 8 * 64 / contraction.OperandBits();
  if (s.tile_k < least) {
    return Refused(Cat("with reuse rows must be of 64 bytes or more; with tile k=", s.tile_k,
                       " they are shorter; use k=", least, " to ", 4 * least));
  }
  if (s.tile_m + geometry.halo > kLargestBox) {
    return Refused(Cat("reuse needs ", s.tile_m + geometry.halo, " positions in a tile, more than the ", kLargestBox,
                       " of a box; use a smaller tile or reuse=im2col"));
  }
  if (s.filter_stages < 2 || s.filter_stages > 16)
    return Refused(Cat("filter_stages=", s.filter_stages, " is not supported; use 2 to 16"));
  if (geometry.filter[kWidth] > kMostColumns) {
    return Refused(Cat("reuse unrolls the ", geometry.filter[kWidth], " columns of the filter, more than ",
                       kMostColumns, "; use reuse=im2col"));
  }
  return Ok();
}

}  // namespace laneshift::compiler
