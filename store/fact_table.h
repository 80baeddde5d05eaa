// The table `facts`: what was measured of a device, by name.
//
// Thread-safety: none; the owner of the Database serialises.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/database.h"
#include "store/records.h"

namespace laneshift::store {

// A row whose checksum is wrong is no row: the next write replaces it.
Result<std::optional<FactRecord>> ReadFact(Database& database, const std::string& device, const std::string& name);
// All that are known of the device, in the order of their names.
Result<std::vector<FactRecord>> ReadFacts(Database& database, const std::string& device);
Status WriteFact(Database& database, const FactRecord& record, int64_t now);
// Every row, in the order of its key. `sound`: its checksum is right.
Status VisitFacts(Database& database, const std::function<Status(const FactRecord& record, bool sound)>& visit);
// Inside of the caller's transaction, whatever is there.
Status ReplaceFact(Database& database, const FactRecord& record);

}  // namespace laneshift::store
