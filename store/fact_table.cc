#include "store/fact_table.h"

#include "base/fingerprint.h"

namespace laneshift::store {
namespace {

std::string Checksum(const FactRecord& r) {
  return base::Fingerprinter().Text("device", r.device).Text("name", r.name).Text("answer", r.answer).Finish().Hex();
}

}  // namespace

Result<std::optional<FactRecord>> ReadFact(Database& database, const std::string& device, const std::string& name) {
  LS_ASSIGN(Statement select,
            database.Prepare("SELECT answer, created, checksum FROM facts WHERE device = ? AND name = ?"));
  select.Text(device).Text(name);
  LS_ASSIGN(bool found, select.Step());
  std::optional<FactRecord> none;
  if (!found) return none;
  FactRecord r{.device = device, .name = name, .answer = select.TextAt(0), .created = select.IntegerAt(1)};
  if (Checksum(r) != select.TextAt(2)) return none;
  return std::optional(std::move(r));
}

Result<std::vector<FactRecord>> ReadFacts(Database& database, const std::string& device) {
  LS_ASSIGN(Statement select,
            database.Prepare("SELECT name, answer, created, checksum FROM facts WHERE device = ? ORDER BY name"));
  select.Text(device);
  std::vector<FactRecord> facts;
  for (;;) {
    LS_ASSIGN(const bool found, select.Step());
    if (!found) return facts;
    FactRecord r{
        .device = device, .name = select.TextAt(0), .answer = select.TextAt(1), .created = select.IntegerAt(2)};
    if (Checksum(r) == select.TextAt(3)) facts.push_back(std::move(r));
  }
}

Status WriteFact(Database& database, const FactRecord& record, int64_t now) {
  FactRecord dated = record;
  if (dated.created == 0) dated.created = now;
  return ReplaceFact(database, dated);
}

Status VisitFacts(Database& database, const std::function<Status(const FactRecord& record, bool sound)>& visit) {
  LS_ASSIGN(Statement select,
            database.Prepare("SELECT device, name, answer, created, checksum FROM facts ORDER BY device, name"));
  for (;;) {
    LS_ASSIGN(const bool found, select.Step());
    if (!found) return Ok();
    const FactRecord r{.device = select.TextAt(0),
                       .name = select.TextAt(1),
                       .answer = select.TextAt(2),
                       .created = select.IntegerAt(3)};
    LS_TRY(visit(r, Checksum(r) == select.TextAt(4)));
  }
}

Status ReplaceFact(Database& database, const FactRecord& record) {
  LS_ASSIGN(Statement insert, database.Prepare("INSERT OR REPLACE INTO facts (device, name, answer, created, checksum) "
                                               "VALUES (?, ?, ?, ?, ?)"));
  insert.Text(record.device).Text(record.name).Text(record.answer);
  return insert.Integer(record.created).Text(Checksum(record)).Run();
}

}  // namespace laneshift::store
