#include "runtime/schedule_choice.h"

#include <string>

#include "autotune/machine.h"
#include "autotune/ranking.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "store/choice_standing.h"

namespace laneshift::runtime {
namespace {

store::Revision RevisionOf(const Engine::Parts& parts) {
  return {base::Cat(compiler::kGeneratorRevision), parts.device.facts().Driver()};
}

ChoiceOrigin OriginOf(const store::StandingChoice& choice) {
  switch (choice.standing) {
    case store::Standing::kPrior:
      return ChoiceOrigin::kPrior;
    case store::Standing::kCurrent:
    case store::Standing::kStale:
      break;
  }
  if (choice.record.source != store::ChoiceSource::kMeasured) return ChoiceOrigin::kPredicted;
  return choice.standing == store::Standing::kStale ? ChoiceOrigin::kStale : ChoiceOrigin::kMeasured;
}

Result<ChosenSchedule> ChooseOn(const Engine::Parts& parts, const target::Target& target, const Problem& problem,
                                const ScheduleConstraint& constraint) {
  const auto stored = parts.store.GetChoices(PrintProblem(problem), std::string(target.name), parts.device_key);
  if (const auto picked = stored ? store::PickChoice(*stored, RevisionOf(parts)) : std::nullopt) {
    const auto parsed = ParseSchedule(picked->record.schedule);
    if (parsed && constraint.Admits(parsed->value) && compiler::ValidateSchedule(problem, parsed->value, target)) {
      return ChosenSchedule{parsed->value, &target, OriginOf(*picked)};
    }
  }
  const autotune::Machine machine =
      autotune::MachineOf(target, parts.device.facts().sm_count, parts.device_key, parts.store);
  LS_ASSIGN(const Schedule schedule, autotune::ChooseSchedule(problem, constraint, target, machine));
  const ChoiceOrigin origin = constraint.fixed == 0 ? ChoiceOrigin::kModel : ChoiceOrigin::kGiven;
  return ChosenSchedule{schedule, &target, origin};
}

}  // namespace

Result<ChosenSchedule> ChooseFor(Engine::Parts& parts, const Problem& problem, const ScheduleConstraint& constraint) {
  LS_ASSIGN(const ChosenSchedule chosen, ChooseOn(parts, parts.target, problem, constraint));
  if (chosen.schedule.reuse != Reuse::kLaneShift) return chosen;
  const target::Target& target = parts.device_target.Get();
  if (target.tensor_facts == parts.target.tensor_facts) return ChosenSchedule{chosen.schedule, &target, chosen.origin};
  auto again = ChooseOn(parts, target, problem, constraint);
  if (again) return again;
  // Where the device is why nothing fits any more, that is the reason to tell.
  LS_TRY(compiler::ValidateSchedule(problem, chosen.schedule, target));
  return again.error();
}

bool IsSettled(ChoiceOrigin origin, bool emulated) {
  switch (origin) {
    case ChoiceOrigin::kModel:
    case ChoiceOrigin::kPrior:
      return false;
    case ChoiceOrigin::kPredicted:
      return emulated;
    case ChoiceOrigin::kStale:
    case ChoiceOrigin::kMeasured:
    case ChoiceOrigin::kGiven:
      return true;
  }
  LS_CHECK(false, "origin out of range: ", static_cast<int>(origin));
}

void RememberModelChoice(Engine::Parts& parts, const Problem& problem, const Schedule& schedule) {
  const store::Revision revision = RevisionOf(parts);
  (void)parts.store.PutChoice({.problem = PrintProblem(problem),
                               .target = std::string(parts.target.name),
                               .device = parts.device_key,
                               .schedule = PrintSchedule(schedule),
                               .source = store::ChoiceSource::kRule,
                               .generator = revision.generator,
                               .driver = revision.driver});
}

}  // namespace laneshift::runtime
