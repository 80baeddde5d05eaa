#include "compiler/check_schedule.h"

#include "base/text.h"
#include "compiler/tma_reach.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using target::Feature;
using target::Target;

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
  if (s.tile_k != 64 && s.tile_k != 128) return Refused(Cat("tile k=", s.tile_k, " is not supported; use 64 or 128"));
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

}  // namespace

Status CheckSchedule(const GemmProblem& problem, const Schedule& s, const Target& target) {
  LS_TRY(CheckTile(s, target));
  LS_TRY(CheckRings(s, target));
  if (s.a_load == LoadPath::kTma) LS_TRY(TmaReaches(problem, ir::Operand::kA));
  if (s.b_load == LoadPath::kTma) LS_TRY(TmaReaches(problem, ir::Operand::kB));
  if (s.d_store == StorePath::kTma) LS_TRY(TmaReaches(problem, ir::Operand::kD));
  return Ok();
}

}  // namespace laneshift::compiler
