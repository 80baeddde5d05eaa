// The table `choices`: which schedule to use for a problem on a device.
//
// Thread-safety: none; the owner of the Database serialises.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.h"
#include "store/records.h"

namespace laneshift::store {

// "rule", "predicted", "measured".
std::string_view ChoiceSourceName(ChoiceSource source);
// As in checksums and digests: before schema 11 a prediction was called "model", and old checksums stay valid.
std::string_view SummedSourceName(ChoiceSource source);
// Either name.
std::optional<ChoiceSource> ChoiceSourceFrom(std::string_view name);

// The columns that readers trust.
std::string ChoiceChecksum(const ChoiceRecord& record);

// One for each generator, in the order of their names. Rows with a wrong checksum are skipped: the next write replaces
// them.
Result<std::vector<ChoiceRecord>> ReadChoices(Database& database, const std::string& problem, const std::string& target,
                                              const std::string& device);
// Those of any device that were predicted.
Result<std::vector<ChoiceRecord>> ReadPredictions(Database& database, const std::string& problem,
                                                  const std::string& target);
// Every row, in the order of its key. `sound`: its checksum is right.
Status VisitChoices(Database& database, const std::function<Status(const ChoiceRecord& record, bool sound)>& visit);

// Without effect if a sound row of the same generator and of a stronger source is there.
Status WriteChoice(Database& database, const ChoiceRecord& record, int64_t now);
// Inside of the caller's transaction, whatever is there.
Status ReplaceChoice(Database& database, const ChoiceRecord& record);

}  // namespace laneshift::store
