#include "store/choice_table.h"

#include "base/check.h"
#include "base/fingerprint.h"
#include "base/text.h"

namespace laneshift::store {
namespace {

constexpr ChoiceSource kSources[] = {ChoiceSource::kRule, ChoiceSource::kPredicted, ChoiceSource::kMeasured};

constexpr char kSelectChoice[] =
    "SELECT problem, target, device, generator, driver, schedule, source, time_us, created, checksum, "
    "basis FROM choices ";

struct ChoiceRow {
  ChoiceRecord record;
  bool sound = false;
};

ChoiceRow RowAt(const Statement& row) {
  const std::optional<ChoiceSource> source = ChoiceSourceFrom(row.TextAt(6));
  ChoiceRecord r{.problem = row.TextAt(0),
                 .target = row.TextAt(1),
                 .device = row.TextAt(2),
                 .schedule = row.TextAt(5),
                 .source = source.value_or(ChoiceSource::kRule),
                 .generator = row.TextAt(3),
                 .driver = row.TextAt(4),
                 .basis = row.TextAt(10),
                 .created = row.IntegerAt(8)};
  if (!row.IsNull(7)) r.time_us = row.RealAt(7);
  const bool sound = source && ChoiceChecksum(r) == row.TextAt(9);
  return {std::move(r), sound};
}

Result<std::vector<ChoiceRecord>> SoundChoices(Statement& select) {
  std::vector<ChoiceRecord> choices;
  for (;;) {
    LS_ASSIGN(const bool found, select.Step());
    if (!found) return choices;
    ChoiceRow row = RowAt(select);
    if (row.sound) choices.push_back(std::move(row.record));
  }
}

}  // namespace

std::string_view ChoiceSourceName(ChoiceSource source) {
  switch (source) {
    case ChoiceSource::kRule:
      return "rule";
    case ChoiceSource::kPredicted:
      return "predicted";
    case ChoiceSource::kMeasured:
      return "measured";
  }
  LS_CHECK(false, "choice source out of range: ", static_cast<int>(source));
}

std::string_view SummedSourceName(ChoiceSource source) {
  return source == ChoiceSource::kPredicted ? "model" : ChoiceSourceName(source);
}

std::optional<ChoiceSource> ChoiceSourceFrom(std::string_view name) {
  for (const ChoiceSource source : kSources) {
    if (ChoiceSourceName(source) == name || SummedSourceName(source) == name) return source;
  }
  return std::nullopt;
}

std::string ChoiceChecksum(const ChoiceRecord& r) {
  base::Fingerprinter print;
  print.Text("problem", r.problem).Text("target", r.target).Text("device", r.device).Text("schedule", r.schedule);
  print.Text("source", SummedSourceName(r.source)).Flag("timed", r.time_us.has_value());
  print.Real("time_us", r.time_us.value_or(0));
  // Rows of schema 4 have neither, and their checksums do not cover them.
  if (!r.generator.empty()) print.Text("generator", r.generator);
  if (!r.driver.empty()) print.Text("driver", r.driver);
  // Rows of schema 7 have no basis.
  if (!r.basis.empty()) print.Text("basis", r.basis);
  return print.Finish().Hex();
}

Result<std::vector<ChoiceRecord>> ReadChoices(Database& database, const std::string& problem, const std::string& target,
                                              const std::string& device) {
  LS_ASSIGN(
      Statement select,
      database.Prepare(base::Cat(kSelectChoice, "WHERE problem = ? AND target = ? AND device = ? ORDER BY generator")));
  select.Text(problem).Text(target).Text(device);
  return SoundChoices(select);
}

Result<std::vector<ChoiceRecord>> ReadPredictions(Database& database, const std::string& problem,
                                                  const std::string& target) {
  LS_ASSIGN(
      Statement select,
      database.Prepare(base::Cat(
          kSelectChoice, "WHERE problem = ? AND target = ? AND source = 'predicted' ORDER BY generator, device")));
  select.Text(problem).Text(target);
  return SoundChoices(select);
}

Status VisitChoices(Database& database, const std::function<Status(const ChoiceRecord& record, bool sound)>& visit) {
  LS_ASSIGN(Statement select,
            database.Prepare(base::Cat(kSelectChoice, "ORDER BY problem, target, device, generator")));
  for (;;) {
    LS_ASSIGN(const bool found, select.Step());
    if (!found) return Ok();
    const ChoiceRow row = RowAt(select);
    LS_TRY(visit(row.record, row.sound));
  }
}

Status WriteChoice(Database& database, const ChoiceRecord& record, int64_t now) {
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database));
  // Inside the transaction, so that two processes cannot both find a weaker row.
  LS_ASSIGN(const std::vector<ChoiceRecord> present,
            ReadChoices(database, record.problem, record.target, record.device));
  for (const ChoiceRecord& other : present) {
    if (other.generator == record.generator && other.source > record.source) return Ok();
  }
  ChoiceRecord dated = record;
  if (dated.created == 0) dated.created = now;
  LS_TRY(ReplaceChoice(database, dated));
  return transaction.Commit();
}

Status ReplaceChoice(Database& database, const ChoiceRecord& record) {
  LS_ASSIGN(Statement insert, database.Prepare("INSERT OR REPLACE INTO choices (problem, target, device, generator, "
                                               "driver, schedule, source, time_us, created, checksum, basis) "
                                               "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Text(record.problem).Text(record.target).Text(record.device).Text(record.generator).Text(record.driver);
  insert.Text(record.schedule).Text(ChoiceSourceName(record.source));
  if (record.time_us) {
    insert.Real(*record.time_us);
  } else {
    insert.Null();
  }
  return insert.Integer(record.created).Text(ChoiceChecksum(record)).Text(record.basis).Run();
}

}  // namespace laneshift::store
