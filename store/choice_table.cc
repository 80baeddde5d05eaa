#include "store/choice_table.h"

#include "base/check.h"
#include "base/fingerprint.h"

namespace laneshift::store {
namespace {

constexpr ChoiceSource kSources[] = {ChoiceSource::kRule, ChoiceSource::kModel, ChoiceSource::kMeasured};

std::optional<ChoiceSource> SourceFrom(std::string_view name) {
  for (ChoiceSource source : kSources) {
    if (ChoiceSourceName(source) == name) return source;
  }
  return std::nullopt;
}

std::string Checksum(const ChoiceRecord& r) {
  return base::Fingerprinter()
      .Text("problem", r.problem)
      .Text("target", r.target)
      .Text("device", r.device)
      .Text("schedule", r.schedule)
      .Text("source", ChoiceSourceName(r.source))
      .Flag("timed", r.time_us.has_value())
      .Real("time_us", r.time_us.value_or(0))
      .Finish()
      .Hex();
}

}  // namespace

std::string_view ChoiceSourceName(ChoiceSource source) {
  switch (source) {
    case ChoiceSource::kRule:
      return "rule";
    case ChoiceSource::kModel:
      return "model";
    case ChoiceSource::kMeasured:
      return "measured";
  }
  LS_CHECK(false, "choice source out of range: ", static_cast<int>(source));
}

Result<std::optional<ChoiceRecord>> ReadChoice(Database& database, const std::string& problem,
                                               const std::string& target, const std::string& device) {
  LS_ASSIGN(Statement select, database.Prepare("SELECT schedule, source, time_us, created, checksum FROM choices "
                                               "WHERE problem = ? AND target = ? AND device = ?"));
  select.Text(problem).Text(target).Text(device);
  LS_ASSIGN(bool found, select.Step());
  std::optional<ChoiceRecord> none;
  if (!found) return none;
  std::optional<ChoiceSource> source = SourceFrom(select.TextAt(1));
  if (!source) return none;
  ChoiceRecord r{.problem = problem,
                 .target = target,
                 .device = device,
                 .schedule = select.TextAt(0),
                 .source = *source,
                 .time_us = std::nullopt,
                 .created = select.IntegerAt(3)};
  if (!select.IsNull(2)) r.time_us = select.RealAt(2);
  if (Checksum(r) != select.TextAt(4)) return none;
  return std::optional(std::move(r));
}

Status WriteChoice(Database& database, const ChoiceRecord& record, int64_t now) {
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database));
  // Inside the transaction, so that two processes cannot both find a weaker row.
  LS_ASSIGN(std::optional<ChoiceRecord> present, ReadChoice(database, record.problem, record.target, record.device));
  if (present && present->source > record.source) return Ok();
  LS_ASSIGN(Statement insert, database.Prepare("INSERT OR REPLACE INTO choices (problem, target, device, schedule, "
                                               "source, time_us, created, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Text(record.problem).Text(record.target).Text(record.device).Text(record.schedule);
  insert.Text(ChoiceSourceName(record.source));
  if (record.time_us) {
    insert.Real(*record.time_us);
  } else {
    insert.Null();
  }
  LS_TRY(insert.Integer(record.created != 0 ? record.created : now).Text(Checksum(record)).Run());
  return transaction.Commit();
}

}  // namespace laneshift::store
