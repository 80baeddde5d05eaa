#include "autotune/reuse_modes.h"

#include "autotune/ranking.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "compiler/contraction/contraction.h"

namespace laneshift::autotune {
namespace {

struct ModeRow {
  std::string_view name;
  Reuse reuse;
  LoadPath a_load;
  ShiftForm shift;
  Border border;
  std::string_view constraint;
};
// clang-format off
constexpr ModeRow kModes[] = {
    {"direct", Reuse::kDirect, LoadPath::kCopy, ShiftForm::kSeparate, Border::kZeros, "reuse=direct"},
    {"im2col", Reuse::kIm2col, LoadPath::kTma, ShiftForm::kSeparate, Border::kZeros, "reuse=im2col a_load=tma"},
    {"gather", Reuse::kIm2col, LoadPath::kCopy, ShiftForm::kSeparate, Border::kZeros, "reuse=im2col a_load=copy"},
    {"row_offset", Reuse::kRowOffset, LoadPath::kTma, ShiftForm::kSeparate, Border::kZeros, "reuse=row_offset border=zeros"},
    {"row_offset border=mask", Reuse::kRowOffset, LoadPath::kTma, ShiftForm::kSeparate, Border::kMask, "reuse=row_offset border=mask"},
    {"lane_shift", Reuse::kLaneShift, LoadPath::kTma, ShiftForm::kSeparate, Border::kZeros, "reuse=lane_shift shift=separate border=zeros"},
    {"lane_shift border=mask", Reuse::kLaneShift, LoadPath::kTma, ShiftForm::kSeparate, Border::kMask, "reuse=lane_shift shift=separate border=mask"},
    {"lane_shift shift=fused", Reuse::kLaneShift, LoadPath::kTma, ShiftForm::kFused, Border::kZeros, "reuse=lane_shift shift=fused border=zeros"},
};
// clang-format on

Result<ReuseMode> Describe(const ModeRow& row, const Problem& problem, const Schedule& chosen,
                           const target::Target& target, int sm_count) {
  ReuseMode mode{.name = row.name, .schedule = chosen};
  mode.chosen = chosen.reuse == row.reuse && chosen.a_load == row.a_load && chosen.shift == row.shift &&
                chosen.border == row.border;
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
  if (!compiler::ContractionOf(problem).RowsArePixels()) return modes;
  for (const ModeRow& row : kModes) {
    if (row.reuse == Reuse::kDirect && !compiler::IsDepthwise(problem)) continue;
    auto mode = Describe(row, problem, chosen, target, sm_count);
    modes.push_back(mode ? std::move(*mode) : ReuseMode{.name = row.name, .refused = mode.error().message});
  }
  return modes;
}

}  // namespace laneshift::autotune
