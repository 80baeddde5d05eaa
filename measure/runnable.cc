#include "measure/runnable.h"

#include <utility>

namespace laneshift::measure {

Result<std::shared_ptr<const Runnable>> Runnable::Make(const Engine& engine, const device::Stream& stream,
                                                       const Problem& problem, const ScheduleConstraint& constraint,
                                                       size_t red_zone_bytes) {
  LS_ASSIGN(Plan plan, engine.MakePlan(problem, constraint));
  const size_t bytes = plan.workspace_bytes();
  LS_ASSIGN(GuardedBuffer workspace, GuardedBuffer::Allocate(stream.context(), stream, bytes, red_zone_bytes));
  LS_TRY(workspace.FillBytes(stream, 0));
  return std::shared_ptr<const Runnable>(new Runnable(std::move(plan), std::move(workspace)));
}

Result<std::optional<std::string>> Runnable::Damage(const device::Stream& stream) const {
  LS_ASSIGN(std::optional<std::string> damage, workspace_.Damage(stream));
  if (damage) *damage += " of the workspace";
  return damage;
}

}  // namespace laneshift::measure
