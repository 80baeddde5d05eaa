// The standing of a stored choice for a given laneshift and driver.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/records.h"

namespace laneshift::store {

// From the best to the worst.
enum class Standing {
  kCurrent,  // made by this generator under this driver
  kStale,    // by this generator under another driver: served, and to be measured again when there is time
  kPrior,    // by another generator: a candidate to begin with, no measured choice
};

// The generator and driver that ask.
struct Revision {
  std::string generator, driver;
};

struct StandingChoice {
  ChoiceRecord record;
  Standing standing = Standing::kCurrent;
};

// The choice to use among those stored for one problem, target and device: of this generator before another's, of a
// stronger source before a weaker one, the youngest. Rules do not count.
std::optional<StandingChoice> PickChoice(const std::vector<ChoiceRecord>& choices, const Revision& revision);

// The schedule of a rule of this generator on this basis, if nothing better is stored: it would choose the same again.
std::optional<ChoiceRecord> RememberedRule(const std::vector<ChoiceRecord>& choices, const std::string& generator,
                                           const std::string& basis);

// The basis of a measured choice whose search was stopped before its end: the schedule that was chosen before it, or
// nothing.
std::string StoppedBasis(const std::optional<std::string>& chosen_before);
// The schedule that an earlier completed search chose: that of the choice, or of the one before it.
std::optional<std::string> SettledSchedule(const ChoiceRecord& choice);
// Whether the choice is that of a search that was stopped.
bool IsStopped(const ChoiceRecord& choice);

}  // namespace laneshift::store
