#include "store/schema.h"

#include "base/text.h"

namespace laneshift::store {
namespace {

using base::Cat;

// Checksums cover every column that a reader trusts, so that a flipped bit anywhere is a miss.
constexpr Migration kMigrations[] = {
    {"kernels", R"sql(
CREATE TABLE kernels (
  key TEXT PRIMARY KEY NOT NULL,
  target TEXT NOT NULL,
  problem TEXT NOT NULL,
  schedule TEXT NOT NULL,
  generator TEXT NOT NULL,
  ptx BLOB NOT NULL,
  checksum TEXT NOT NULL,
  cubin BLOB,
  assembler TEXT,
  cubin_checksum TEXT,
  created INTEGER NOT NULL,
  last_used INTEGER NOT NULL,
  bytes INTEGER NOT NULL
);
CREATE INDEX kernels_by_use ON kernels(last_used);
)sql"},
    {"choices", R"sql(
CREATE TABLE choices (
  problem TEXT NOT NULL,
  target TEXT NOT NULL,
  device TEXT NOT NULL,
  schedule TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('rule', 'model', 'measured')),
  time_us REAL,
  created INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  PRIMARY KEY (problem, target, device)
);
)sql"},
    {"damaged: what a checksum refused, kept for inspection", R"sql(
CREATE TABLE damaged (
  id INTEGER PRIMARY KEY,
  origin TEXT NOT NULL,
  key TEXT NOT NULL,
  content BLOB,
  checksum TEXT,
  found INTEGER NOT NULL
);
)sql"},
    {"facts", R"sql(
CREATE TABLE facts (
  device TEXT NOT NULL,
  name TEXT NOT NULL,
  answer TEXT NOT NULL,
  created INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  PRIMARY KEY (device, name)
);
)sql"},
};

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

Result<int64_t> SchemaVersion(Database& database, std::span<const Migration> migrations) {
  LS_ASSIGN(int64_t application, database.Integer("PRAGMA application_id"));
  LS_ASSIGN(int64_t version, database.Integer("PRAGMA user_version"));
  if (application == 0 && version == 0) {
    LS_ASSIGN(int64_t objects, database.Integer("SELECT count(*) FROM sqlite_schema"));
    if (objects == 0) return 0;
  }
  if (application != kApplicationId) {
    return MakeError(ErrorCode::kUnsupported, "the file is a database of another program");
  }
  int64_t known = static_cast<int64_t>(migrations.size());
  if (version < 0 || version > known) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("the file has schema version ", version, " of a newer laneshift; this one knows ", known));
  }
  return version;
}

Status Migrate(Database& database, std::span<const Migration> migrations) {
  for (;;) {
    LS_ASSIGN(int64_t seen, SchemaVersion(database, migrations));
    if (seen == static_cast<int64_t>(migrations.size())) return Ok();
    LS_ASSIGN(Transaction transaction, Transaction::Begin(database));
    // Another process may have taken the step while this one waited for the lock.
    LS_ASSIGN(int64_t version, SchemaVersion(database, migrations));
    if (version != seen) continue;
    LS_TRY(database.Execute(migrations[static_cast<size_t>(version)].sql));
    LS_TRY(database.Execute(Cat("PRAGMA application_id=", kApplicationId, "; PRAGMA user_version=", version + 1)));
    LS_TRY(transaction.Commit());
  }
}

}  // namespace laneshift::store
