#include "store/schema.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/text.h"

namespace laneshift::store {
namespace {

using base::Cat;

// Checksums cover all columns that readers trust, so that a flipped bit anywhere is a miss.
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
    // A trial's id is the fingerprint of its contents: identity and checksum in one.
    {"trials with their samples", R"sql(
CREATE TABLE devices (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE problems (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE schedules (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE trials (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  problem INTEGER NOT NULL REFERENCES problems(id),
  target TEXT NOT NULL,
  device INTEGER NOT NULL REFERENCES devices(id),
  schedule INTEGER NOT NULL REFERENCES schedules(id),
  generator TEXT NOT NULL,
  driver TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('passed', 'wrong', 'crashed', 'hung', 'refused')),
  detail TEXT NOT NULL,
  predicted_us REAL,
  time_us REAL NOT NULL,
  low_us REAL NOT NULL,
  high_us REAL NOT NULL,
  created INTEGER NOT NULL
);
CREATE INDEX trials_by_problem ON trials(problem, target, device);
CREATE TABLE samples (
  trial INTEGER NOT NULL REFERENCES trials(number),
  n INTEGER NOT NULL,
  time_us REAL NOT NULL,
  sm_mhz REAL,
  memory_mhz REAL,
  temperature_c REAL,
  power_w REAL,
  throttle_reasons INTEGER,
  PRIMARY KEY (trial, n)
) WITHOUT ROWID;
)sql"},
    // The generator of older choices is unknown, and their checksums do not cover one.
    {"choices by generator, with the driver", R"sql(
CREATE TABLE choices_by_generator (
  problem TEXT NOT NULL,
  target TEXT NOT NULL,
  device TEXT NOT NULL,
  generator TEXT NOT NULL,
  driver TEXT NOT NULL,
  schedule TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('rule', 'model', 'measured')),
  time_us REAL,
  created INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  PRIMARY KEY (problem, target, device, generator)
);
INSERT INTO choices_by_generator
  SELECT problem, target, device, '', '', schedule, source, time_us, created, checksum FROM choices;
DROP TABLE choices;
ALTER TABLE choices_by_generator RENAME TO choices;
)sql"},
    {"properties of the file as a whole, such as its seal", R"sql(
CREATE TABLE properties (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL);
)sql"},
    // A row's last columns are stored after its code: without these, adding up sizes would read all of it.
    {"sizes of kernels without reading their code", R"sql(
DROP INDEX kernels_by_use;
CREATE INDEX kernels_by_use ON kernels(last_used, key, bytes);
CREATE INDEX kernels_with_cubin ON kernels(key) WHERE cubin IS NOT NULL;
)sql"},
    {"what a rule's choice follows from", R"sql(
ALTER TABLE choices ADD COLUMN basis TEXT NOT NULL DEFAULT '';
)sql"},
    // Older trials have neither, and their ids do not cover them.
    {"which assembler a trial went through", R"sql(
ALTER TABLE trials ADD COLUMN assembler TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN assembler_file TEXT NOT NULL DEFAULT '';
)sql"},
    {"a choice that was not timed is called predicted, as everywhere else", R"sql(
CREATE TABLE choices_by_word (
  problem TEXT NOT NULL,
  target TEXT NOT NULL,
  device TEXT NOT NULL,
  generator TEXT NOT NULL,
  driver TEXT NOT NULL,
  schedule TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('rule', 'predicted', 'measured')),
  time_us REAL,
  created INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  basis TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (problem, target, device, generator)
);
INSERT INTO choices_by_word
  SELECT problem, target, device, generator, driver, schedule, replace(source, 'model', 'predicted'), time_us, created,
         checksum, basis FROM choices;
DROP TABLE choices;
ALTER TABLE choices_by_word RENAME TO choices;
)sql"},
    // Older trials count as interleaved, and their ids cover no order.
    {"in which order a trial was timed", R"sql(
ALTER TABLE trials ADD COLUMN timing_order TEXT NOT NULL DEFAULT 'interleaved'
  CHECK (timing_order IN ('interleaved', 'series'));
)sql"},
};

using Things = std::vector<std::string>;  // one line for each object of a schema

Result<Things> ThingsOf(Database& database) {
  LS_ASSIGN(Statement select, database.Prepare("SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema "
                                               "ORDER BY type, name"));
  Things things;
  for (;;) {
    LS_ASSIGN(const bool row, select.Step());
    if (!row) return things;
    things.push_back(Cat(select.TextAt(0), " ", select.TextAt(1), " of ", select.TextAt(2), ": ", select.TextAt(3)));
  }
}

Status TakeSteps(Database& database, std::span<const Migration> steps) {
  for (const Migration& step : steps) LS_TRY(database.Execute(step.sql));
  return Ok();
}

Result<Things> ThingsAfter(std::span<const Migration> steps) {
  LS_ASSIGN(Database database, Database::OpenInMemory());
  LS_TRY(TakeSteps(database, steps));
  return ThingsOf(database);
}

// The schema after the first `version` steps. Those of this program's steps are worked out once a process.
Result<Things> ExpectedThings(std::span<const Migration> migrations, int64_t version) {
  static std::mutex mutex;
  static std::map<int64_t, Things> known;
  const std::span<const Migration> steps = migrations.first(static_cast<size_t>(version));
  if (steps.data() != kMigrations) return ThingsAfter(steps);
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(version); found != known.end()) return found->second;
  LS_ASSIGN(Things things, ThingsAfter(steps));
  return known.emplace(version, std::move(things)).first->second;
}

// "trigger x of kernels", without the text that makes it.
std::string NameOf(const std::string& thing) { return thing.substr(0, thing.find(": ")); }

Status CheckThings(const Things& found, const Things& expected) {
  const auto first_missing = [](const auto& of, const auto& in) {
    return std::find_if(of.begin(), of.end(),
                        [&](const auto& thing) { return std::find(in.begin(), in.end(), thing) == in.end(); });
  };
  if (const auto strange = first_missing(found, expected); strange != found.end()) {
    return MakeError(ErrorCode::kUnsupported, Cat("the file has ", strange->starts_with("index") ? "an " : "a ",
                                                  NameOf(*strange), " that laneshift did not make"));
  }
  if (const auto missing = first_missing(expected, found); missing != expected.end()) {
    return MakeError(ErrorCode::kUnsupported, Cat("the file lacks the ", NameOf(*missing)));
  }
  return Ok();
}

Result<int64_t> DeclaredVersion(Database& database, std::span<const Migration> migrations) {
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

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

Result<Database> OpenFreshInMemory() {
  LS_ASSIGN(Database database, Database::OpenInMemory());
  LS_TRY(TakeSteps(database, kMigrations));
  return database;
}

Result<int64_t> SchemaVersion(Database& database, std::span<const Migration> migrations) {
  for (;;) {
    LS_ASSIGN(const int64_t version, DeclaredVersion(database, migrations));
    LS_ASSIGN(const Things found, ThingsOf(database));
    // Another process may have taken a step between the two questions.
    LS_ASSIGN(const int64_t still, DeclaredVersion(database, migrations));
    if (still != version) continue;
    LS_ASSIGN(const Things expected, ExpectedThings(migrations, version));
    LS_TRY(CheckThings(found, expected));
    return version;
  }
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
