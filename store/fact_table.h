// The table `facts`: what was measured of a device, by name.
//
// Thread-safety: none; the owner of the Database serialises.
#pragma once

#include "store/database.h"
#include "store/records.h"

namespace laneshift::store {

// A row whose checksum is wrong is no row: the next write replaces it.
Result<std::optional<FactRecord>> ReadFact(Database& database, const std::string& device, const std::string& name);
Status WriteFact(Database& database, const FactRecord& record, int64_t now);

}  // namespace laneshift::store
