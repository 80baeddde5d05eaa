#include "runtime/schedule_choice.h"

#include <optional>
#include <string>
#include <vector>

#include "autotune/machine.h"
#include "autotune/ranking.h"
#include "base/check.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "compiler/plan/packing.h"
#include "store/choice_standing.h"

namespace laneshift::runtime {
namespace {

store::Revision RevisionOf(const Engine::Parts& parts) {
  return {compiler::Generator(), parts.device.facts().Driver()};
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

// What the store holds for one problem.
struct Question {
  const Problem& problem;
  const ScheduleConstraint& constraint;
  const target::Target& target;

  // A record's schedule, if it may be taken.
  std::optional<Schedule> Take(const store::ChoiceRecord& record) const {
    const auto parsed = ParseSchedule(record.schedule);
    if (!parsed || !constraint.Admits(parsed->value)) return std::nullopt;
    if (!compiler::ValidateSchedule(problem, parsed->value, target)) return std::nullopt;
    return parsed->value;
  }
};

// The timing model's best; without a constraint, the stored one if it is still valid.
Result<Schedule> ChooseByModel(Engine::Parts& parts, const Question& question, const std::string& problem_text,
                               const std::vector<store::ChoiceRecord>& stored) {
  const autotune::Machine machine =
      autotune::MachineOf(question.target, parts.device.facts().sm_count, parts.device_key, parts.store);
  const bool open = question.constraint.fixed == 0;
  const store::Revision revision = RevisionOf(parts);
  const std::string basis = open ? autotune::ChoiceBasis(question.target, machine) : std::string();
  if (const auto rule = store::RememberedRule(stored, revision.generator, basis)) {
    if (const auto schedule = question.Take(*rule)) return *schedule;
  }
  LS_ASSIGN(const Schedule schedule,
            autotune::ChooseSchedule(question.problem, question.constraint, question.target, machine));
  // Without effect where something stronger is stored.
  if (open) {
    (void)parts.store.PutChoice({.problem = problem_text,
                                 .target = std::string(question.target.name),
                                 .device = parts.device_key,
                                 .schedule = PrintSchedule(schedule),
                                 .source = store::ChoiceSource::kRule,
                                 .generator = revision.generator,
                                 .driver = revision.driver,
                                 .basis = basis});
  }
  return schedule;
}

Result<ChosenSchedule> ChooseOn(Engine::Parts& parts, const target::Target& target, const Problem& problem,
                                const ScheduleConstraint& constraint) {
  const Question question{problem, constraint, target};
  const std::string text = PrintProblem(problem);
  std::vector<store::ChoiceRecord> stored;
  if (auto found = parts.store.GetChoices(text, std::string(target.name), parts.device_key)) stored = std::move(*found);
  auto picked = store::PickChoice(stored, RevisionOf(parts));
  // A prediction made on a machine without this device, on an emulator there.
  if (!picked && !parts.emulated) {
    picked = store::PickChoice(parts.store.GetPredictions(text, std::string(target.name)), RevisionOf(parts));
  }
  if (picked) {
    if (const auto schedule = question.Take(picked->record))
      return ChosenSchedule{*schedule, &target, OriginOf(*picked)};
  }
  LS_ASSIGN(const Schedule schedule, ChooseByModel(parts, question, text, stored));
  const ChoiceOrigin origin = constraint.fixed == 0 ? ChoiceOrigin::kRule : ChoiceOrigin::kGiven;
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
  // If nothing fits any more because of the device's facts, report that.
  LS_TRY(compiler::ValidateSchedule(problem, chosen.schedule, target));
  return again.error();
}

Result<ScheduleConstraint> WithoutWorkspace(const Schedule& schedule) {
  std::string text = "split_k=1";
  // For both operands: if one is copied, packing the other may be the better choice.
  if (compiler::PacksAny(schedule)) {
    if (schedule.a_load != LoadPath::kTma) text += " a_load=copy";
    if (schedule.b_load != LoadPath::kTma) text += " b_load=copy";
  }
  return ParseSchedule(text);
}

bool IsSettled(ChoiceOrigin origin, bool emulated) {
  switch (origin) {
    case ChoiceOrigin::kRule:
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

}  // namespace laneshift::runtime
