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

Status WriteFact(Database& database, const FactRecord& record, int64_t now) {
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database));
  LS_ASSIGN(Statement insert, database.Prepare("INSERT OR REPLACE INTO facts (device, name, answer, created, checksum) "
                                               "VALUES (?, ?, ?, ?, ?)"));
  insert.Text(record.device).Text(record.name).Text(record.answer);
  LS_TRY(insert.Integer(record.created != 0 ? record.created : now).Text(Checksum(record)).Run());
  return transaction.Commit();
}

}  // namespace laneshift::store
