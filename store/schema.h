// Schema: the tables, as the list of steps that lead to them.
//
// A file carries kApplicationId and, as user_version, the number of steps that it has seen. To change the schema,
// append one row to kMigrations; never edit a row that was released. Thread-safety: none; the owner of the Database
// serialises.
#pragma once

#include <span>

#include "store/database.h"

namespace laneshift::store {

inline constexpr int64_t kApplicationId = 0x4c534854;  // "LSHT"

struct Migration {
  const char* what;
  const char* sql;
};

std::span<const Migration> Migrations();

// Checks the kind of the file without changing it: kUnsupported if it is another program's or of a newer laneshift, or
// if its tables, indices, views or triggers are not exactly those that the steps make: the store queries only a schema
// that it knows. Otherwise returns its schema version; 0 for an empty file.
Result<int64_t> SchemaVersion(Database& database, std::span<const Migration> migrations = Migrations());

// A database in memory, without records.
Result<Database> OpenFreshInMemory();

// Takes the steps that the file has not seen, each in its own transaction. Safe against other processes doing the same.
Status Migrate(Database& database, std::span<const Migration> migrations = Migrations());

}  // namespace laneshift::store
