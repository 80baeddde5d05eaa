// The table `choices`: which schedule to use for a problem on a device.
//
// Thread-safety: none; the owner of the Database serialises.
#pragma once

#include "store/database.h"
#include "store/records.h"

namespace laneshift::store {

std::string_view ChoiceSourceName(ChoiceSource source);

// A row whose checksum is wrong is no row: the next write replaces it.
Result<std::optional<ChoiceRecord>> ReadChoice(Database& database, const std::string& problem,
                                               const std::string& target, const std::string& device);
// Without effect if a sound row of a stronger source is there.
Status WriteChoice(Database& database, const ChoiceRecord& record, int64_t now);

}  // namespace laneshift::store
