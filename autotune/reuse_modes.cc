#include "autotune/reuse_modes.h"

#include "autotune/ranking.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/compile.h"

namespace laneshift::autotune {
namespace {

struct ModeRow {
  std::string_view name;
  Reuse reuse;
  LoadPath a_load;
  std::string_view constraint;
};
constexpr ModeRow kModes[] = {
    {"im2col", Reuse::kIm2col, LoadPath::kTma, "reuse=im2col a_load=tma"},
    {"gather", Reuse::kIm2col, LoadPath::kCopy, "reuse=im2col a_load=copy"},
    {"row_offset", Reuse::kRowOffset, LoadPath::kTma, "reuse=row_offset a_load=tma"},
    {"lane_shift", Reuse::kLaneShift, LoadPath::kTma, "reuse=lane_shift a_load=tma"},
};

Result<ReuseMode> Describe(const ModeRow& row, const Problem& problem, const Schedule& chosen,
                           const target::Target& target, int sm_count) {
  ReuseMode mode{.name = row.name, .schedule = chosen};
  mode.chosen = chosen.reuse == row.reuse && chosen.a_load == row.a_load;
  if (!mode.chosen) {
    const auto constraint = ParseSchedule(row.constraint);
    LS_CHECK(constraint.has_value(), "the constraint of mode ", row.name, " is no schedule");
    LS_ASSIGN(mode.schedule, ChooseSchedule(problem, *constraint, target, sm_count));
  }
  LS_ASSIGN(const ir::Program program, compiler::BuildProgram(problem, mode.schedule, target));
  mode.traffic = compiler::CountTraffic(problem, mode.schedule, program, target, sm_count);
  return mode;
}

}  // namespace

std::vector<ReuseMode> CompareReuseModes(const Problem& problem, const Schedule& chosen, const target::Target& target,
                                         int sm_count) {
  std::vector<ReuseMode> modes;
  if (!std::holds_alternative<ConvProblem>(problem)) return modes;
  for (const ModeRow& row : kModes) {
    auto mode = Describe(row, problem, chosen, target, sm_count);
    modes.push_back(mode ? std::move(*mode) : ReuseMode{.name = row.name, .refused = mode.error().message});
  }
  return modes;
}

}  // namespace laneshift::autotune
