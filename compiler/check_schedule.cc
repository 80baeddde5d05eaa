#include "compiler/check_schedule.h"

#include <cstdlib>

#include "base/text.h"
#include "compiler/conv_reach.h"
#include "compiler/tma_reach.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using target::Feature;
using target::Target;

constexpr int kLargestBox = 256;                      // rows of a box of the TMA
constexpr int kWidestAccess = 16;                     // elements, of bytes
constexpr size_t kMostTiles = 16;                     // of a slot of a channel
constexpr int kMostColumns = 16;                      // of a filter whose columns are unrolled
constexpr int64_t kMostPositions = int64_t{1} << 30;  // index arithmetic is 32-bit

Error Refused(std::string message) { return MakeError(ErrorCode::kUnsupported, std::move(message)); }

Status CheckTile(const Schedule& s, const Target& target) {
  if (target.Has(Feature::kTensorMemory)) {
    if (s.tile_m != 64 && s.tile_m != 128) {
      return Refused(Cat("tile m=", s.tile_m, " is no tcgen05.mma shape of one CTA; use 64 or 128"));
    }
    if (s.math_warpgroups != 1) {
      return Refused(Cat("math=", s.math_warpgroups, " is for wgmma; on ", target.name, " use math=1"));
    }
  } else {
    if (s.math_warpgroups != 1 && s.math_warpgroups != 2) {
      return Refused(Cat("math=", s.math_warpgroups, " warpgroups are not supported; use 1 or 2"));
    }
    if (s.tile_m != 64 * s.math_warpgroups) {
      return Refused(Cat("tile m=", s.tile_m, " does not give each of ", s.math_warpgroups,
                         " math warpgroups 64 rows; use ", 64 * s.math_warpgroups, " or another math="));
    }
  }
  if (s.tile_n < 16 || s.tile_n > 256 || s.tile_n % 16 != 0) {
    return Refused(Cat("tile n=", s.tile_n, " is not supported; use a multiple of 16 from 16 to 256"));
  }
  return Ok();
}

Status CheckRings(const Schedule& s, const Target& target) {
  if (s.stages < 2 || s.stages > 16) return Refused(Cat("stages=", s.stages, " is not supported; use 2 to 16"));
  const int most = target.Has(Feature::kTensorMemory) ? 2 : 1;
  if (s.acc_stages < 1 || s.acc_stages > most) {
    return Refused(
        Cat("acc=", s.acc_stages, " is not supported on ", target.name, "; use ", most == 1 ? "1" : "1 or 2"));
  }
  if (s.raster < 1) return Refused(Cat("raster=", s.raster, " is not supported; use 1 or more"));
  return Ok();
}

// Blocks of K narrower than a swizzle span of 128 bytes are for convolutions of few channels.
Status CheckDepth(const Schedule& s, int least) {
  for (int k = least; k <= 128; k *= 2) {
    if (s.tile_k == k) return Ok();
  }
  return Refused(Cat("tile k=", s.tile_k, " is not supported; use a power of two from ", least, " to 128"));
}

// The rule of stores along rows: `width` elements of the output are one aligned access everywhere.
Status CheckRows(const Schedule& s, DataType type, int width) {
  if (s.d_store != StorePath::kRows || width * DataTypeBytes(type) == 16) return Ok();
  return Refused("d_store=rows needs rows of whole, aligned 16 bytes; use d_store=direct");
}

// Decisions that belong to modes of reuse.
Status CheckForms(const Schedule& s) {
  if (s.shift != ShiftForm::kSeparate && s.reuse != Reuse::kLaneShift)
    return Refused("shift=fused is for lanes that move; use reuse=lane_shift or shift=separate");
  if (s.border != Border::kZeros && s.reuse != Reuse::kLaneShift && s.reuse != Reuse::kRowOffset)
    return Refused("border=mask is for activations that are reused; use reuse=row_offset or border=zeros");
  return Ok();
}

// What products that move the lanes of A need of the device, and of the filter.
Status CheckFusedShifts(const ConvGeometry& geometry, const Target& target) {
  const target::TensorFacts& facts = target.tensor_facts;
  const bool whole = facts.shift_scope == target::ShiftScope::kGroups || facts.shift_scope == target::ShiftScope::kCta;
  if (!whole || facts.ashift_time == target::AshiftTime::kOther) {
    return Refused(Cat("shift=fused: tcgen05.mma.ashift of this device ",
                       whole ? "moves rows neither before nor after their product" : "does not move all lanes",
                       " (see laneshift doctor); use shift=separate"));
  }
  if (geometry.lost < ir::kPartitionLanes) return Ok();
  return Refused(Cat("shift=fused loses the ", geometry.lost, " lanes that a filter row moves, of each ",
                     ir::kPartitionLanes, "; use shift=separate"));
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

Status CheckLaneShift(const ConvProblem& problem, const ConvGeometry& geometry, const Schedule& s,
                      const Target& target) {
  if (!target.Has(Feature::kTensorMemory))
    return Refused(
        Cat("reuse=lane_shift moves operands in Tensor Memory, which ", target.name, " has not; use reuse=row_offset"));
  LS_TRY(s.shift == ShiftForm::kFused ? CheckFusedShifts(geometry, target) : CheckShifts(target));
  if (s.tile_m != ir::kTensorLanes)
    return Refused(Cat("reuse=lane_shift needs all ", ir::kTensorLanes, " lanes; use tile m=", ir::kTensorLanes,
                       " instead of ", s.tile_m));
  if (s.shift == ShiftForm::kSeparate && s.tile_k % 64 != 0)
    return Refused(Cat("reuse=lane_shift brings single rows of 128 bytes; with tile k=", s.tile_k, " use k=64 or 128"));
  if (geometry.phases.size() * 2 > kMostTiles)
    return Refused(
        Cat("reuse=lane_shift with stride ", problem.stride[kWidth], " needs too many tiles; use reuse=im2col"));
  return Ok();
}

// The rules of masked borders: the lanes of a tile are positions of a walk over the image's own rows.
Status CheckMask(const ConvProblem& problem, const ConvGeometry& geometry, const Schedule& s, const Target& target) {
  if (!target.Has(Feature::kTensorMemory))
    return Refused(
        Cat("border=mask leaves out lanes in Tensor Memory, which ", target.name, " has not; use border=zeros"));
  if (s.tile_m != ir::kTensorLanes)
    return Refused(
        Cat("border=mask names lanes by rows of the tile; use tile m=", ir::kTensorLanes, " instead of ", s.tile_m));
  if (s.reuse == Reuse::kLaneShift && s.shift == ShiftForm::kFused)
    return Refused(
        "border=mask begins the chains of a tile at two rows, and shift=fused has tiles in four pieces; use "
        "shift=separate or border=zeros");
  if (!geometry.masks_border) {
    return Refused(
        Cat("border=mask needs output rows as long as the image's, at stride 1, and a filter column on the "
            "output pixel; here rows of ",
            problem.input[kWidth], " give ", problem.Output()[kWidth], " at stride ", problem.stride[kWidth],
            "; use border=zeros"));
  }
  for (const ConvGeometry::Column& column : geometry.columns) {
    if (std::abs(column.beside) >= ir::kPartitionLanes)
      return Refused(Cat("border=mask: a filter that reaches ", std::abs(column.beside),
                         " columns beside the image is beyond ", ir::kPartitionLanes - 1, "; use border=zeros"));
  }
  const int64_t of_image = geometry.positions / problem.n;
  if (problem.pad_before[kWidth] <= of_image) return Ok();
  return Refused(Cat("border=mask: images of ", of_image, " pixels are smaller than the padding; use border=zeros"));
}

// The rules of operands that are loaded once for all columns of a filter row.
Status CheckReuse(const ConvProblem& problem, const ConvGeometry& geometry, const Schedule& s, const Target& target) {
  if (s.a_load != LoadPath::kTma)
    return Refused("reuse moves tiles that the TMA has loaded; use a_load=tma or reuse=im2col");
  if (s.reuse == Reuse::kLaneShift) LS_TRY(CheckLaneShift(problem, geometry, s, target));
  if (s.border == Border::kMask) LS_TRY(CheckMask(problem, geometry, s, target));
  if (s.tile_k < 32) {
    return Refused(
        Cat("with reuse rows are of 64 bytes or more; with tile k=", s.tile_k, " they are shorter; use k=32 to 128"));
  }
  if (s.tile_m + geometry.halo > kLargestBox) {
    return Refused(Cat("reuse needs ", s.tile_m + geometry.halo, " positions in a tile, more than the ", kLargestBox,
                       " of a box; use a smaller tile or reuse=im2col"));
  }
  if (s.filter_stages < 2 || s.filter_stages > 16)
    return Refused(Cat("filter_stages=", s.filter_stages, " is not supported; use 2 to 16"));
  if (problem.filter[kWidth] > kMostColumns) {
    return Refused(Cat("reuse unrolls the ", problem.filter[kWidth], " columns of the filter, more than ", kMostColumns,
                       "; use reuse=im2col"));
  }
  return Ok();
}

}  // namespace

Status CheckSchedule(const GemmProblem& problem, const Schedule& s, const Target& target) {
  LS_TRY(CheckTile(s, target));
  LS_TRY(CheckDepth(s, 64));
  LS_TRY(CheckRings(s, target));
  if (s.reuse != Reuse::kNone) return Refused("reuse is for convolutions; use reuse=none");
  LS_TRY(CheckForms(s));
  if (s.a_load == LoadPath::kTma) LS_TRY(TmaReaches(problem, ir::Operand::kA));
  if (s.b_load == LoadPath::kTma) LS_TRY(TmaReaches(problem, ir::Operand::kB));
  if (s.d_store == StorePath::kTma) LS_TRY(TmaReaches(problem, ir::Operand::kD));
  return CheckRows(s, problem.d, AccessWidth(problem, ir::Operand::kD, kWidestAccess));
}

Status CheckSchedule(const ConvProblem& problem, const Schedule& s, const Target& target) {
  LS_TRY(CheckTile(s, target));
  LS_TRY(CheckDepth(s, 16));
  LS_TRY(CheckRings(s, target));
  if (s.reuse == Reuse::kNone) return Refused("a convolution needs a reuse mode; use reuse=im2col");
  if (problem.x != problem.w || problem.x == DataType::kF32)
    return Refused(Cat("x=", DataTypeName(problem.x), " with w=", DataTypeName(problem.w),
                       " is not supported; use f16 or bf16 for both"));
  LS_TRY(CheckForms(s));
  const ConvGeometry geometry = GeometryOf(problem, s);
  if (geometry.positions > kMostPositions)
    return Refused(Cat("the convolution has ", geometry.positions, " positions; at most ", kMostPositions,
                       " are supported; split the images"));
  if (s.reuse != Reuse::kIm2col) LS_TRY(CheckReuse(problem, geometry, s, target));
  if (s.a_load == LoadPath::kTma && !TapsAreEven(problem, false))
    return Refused("the taps of a filter are not at one distance; use reuse=im2col a_load=copy, or pack the filters");
  if (s.a_load == LoadPath::kTma) LS_TRY(TmaReaches(problem, geometry, s, ir::Operand::kA));
  if (s.b_load == LoadPath::kTma) LS_TRY(TmaReaches(problem, geometry, s, ir::Operand::kB));
  if (s.d_store == StorePath::kTma) LS_TRY(TmaReaches(problem, geometry, s, ir::Operand::kD));
  return CheckRows(s, problem.y, AccessWidth(problem, ir::Operand::kD, kWidestAccess));
}

}  // namespace laneshift::compiler
