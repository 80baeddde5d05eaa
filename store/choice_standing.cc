#include "store/choice_standing.h"

#include <tuple>

#include "base/text.h"

namespace laneshift::store {
namespace {

constexpr std::string_view kStopped = "stopped";

Standing StandingOf(const ChoiceRecord& choice, const Revision& revision) {
  if (choice.generator != revision.generator) return Standing::kPrior;
  return choice.driver == revision.driver ? Standing::kCurrent : Standing::kStale;
}

auto Order(const StandingChoice& choice) {
  const ChoiceRecord& r = choice.record;
  return std::tuple(choice.standing != Standing::kPrior, r.source, choice.standing == Standing::kCurrent, r.created,
                    r.generator);
}

}  // namespace

std::optional<StandingChoice> PickChoice(const std::vector<ChoiceRecord>& choices, const Revision& revision) {
  std::optional<StandingChoice> best;
  for (const ChoiceRecord& record : choices) {
    if (record.source == ChoiceSource::kRule) continue;
    StandingChoice choice{record, StandingOf(record, revision)};
    if (!best || Order(choice) > Order(*best)) best = std::move(choice);
  }
  return best;
}

std::optional<ChoiceRecord> RememberedRule(const std::vector<ChoiceRecord>& choices, const std::string& generator,
                                           const std::string& basis) {
  if (basis.empty()) return std::nullopt;
  for (const ChoiceRecord& record : choices) {
    if (record.source == ChoiceSource::kRule && record.generator == generator && record.basis == basis) return record;
  }
  return std::nullopt;
}

std::string StoppedBasis(const std::optional<std::string>& chosen_before) {
  return base::Cat(kStopped, chosen_before ? base::Cat(" ", *chosen_before) : "");
}

bool IsStopped(const ChoiceRecord& choice) {
  return choice.source == ChoiceSource::kMeasured && choice.basis.starts_with(kStopped);
}

std::optional<std::string> SettledSchedule(const ChoiceRecord& choice) {
  if (!IsStopped(choice)) return choice.schedule;
  if (choice.basis.size() <= kStopped.size()) return std::nullopt;
  return choice.basis.substr(kStopped.size() + 1);
}

}  // namespace laneshift::store
