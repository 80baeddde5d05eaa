#include "store/choice_standing.h"

#include <tuple>

namespace laneshift::store {
namespace {

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

}  // namespace laneshift::store
