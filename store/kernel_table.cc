#include "store/kernel_table.h"

#include "base/fingerprint.h"

namespace laneshift::store {
namespace {

std::string Checksum(const KernelRecord& r) {
  return base::Fingerprinter()
      .Text("key", r.key)
      .Text("target", r.target)
      .Text("problem", r.problem)
      .Text("schedule", r.schedule)
      .Text("generator", r.generator)
      .Text("ptx", r.ptx)
      .Finish()
      .Hex();
}

std::string Checksum(const std::string& key, const CubinRecord& cubin) {
  return base::Fingerprinter()
      .Text("key", key)
      .Text("assembler", cubin.assembler)
      .Bytes("cubin", cubin.bytes)
      .Finish()
      .Hex();
}

}  // namespace

Result<KernelRow> ReadKernel(Database& database, const std::string& key) {
  LS_ASSIGN(Statement select,
            database.Prepare("SELECT target, problem, schedule, generator, ptx, checksum, cubin, assembler, "
                             "cubin_checksum, created, last_used FROM kernels WHERE key = ?"));
  select.Text(key);
  LS_ASSIGN(bool found, select.Step());
  KernelRow row;
  if (!found) return row;
  KernelRecord& r = row.record;
  r = {.key = key,
       .target = select.TextAt(0),
       .problem = select.TextAt(1),
       .schedule = select.TextAt(2),
       .generator = select.TextAt(3),
       .ptx = select.TextAt(4),
       .cubin = std::nullopt,
       .created = select.IntegerAt(9),
       .last_used = select.IntegerAt(10)};
  if (Checksum(r) != select.TextAt(5)) return KernelRow{RowState::kDamaged, {}};
  row.state = RowState::kSound;
  if (select.IsNull(6)) return row;
  CubinRecord cubin{select.TextAt(7), select.TextAt(6)};
  if (Checksum(key, cubin) != select.TextAt(8)) {
    row.state = RowState::kCubinDamaged;
  } else {
    r.cubin = std::move(cubin);
  }
  return row;
}

Status WriteKernel(Database& database, const KernelRecord& record, int64_t now) {
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database));
  LS_ASSIGN(Statement insert, database.Prepare(R"sql(
INSERT INTO kernels (key, target, problem, schedule, generator, ptx, checksum, created, last_used, bytes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
  target = excluded.target, problem = excluded.problem, schedule = excluded.schedule, generator = excluded.generator,
  ptx = excluded.ptx, last_used = excluded.last_used, checksum = excluded.checksum,
  cubin = iif(checksum = excluded.checksum, cubin, NULL),
  assembler = iif(checksum = excluded.checksum, assembler, NULL),
  cubin_checksum = iif(checksum = excluded.checksum, cubin_checksum, NULL),
  bytes = excluded.bytes + iif(checksum = excluded.checksum, ifnull(length(cubin), 0), 0)
)sql"));
  insert.Text(record.key).Text(record.target).Text(record.problem).Text(record.schedule).Text(record.generator);
  insert.Blob(record.ptx).Text(Checksum(record)).Integer(record.created != 0 ? record.created : now).Integer(now);
  LS_TRY(insert.Integer(static_cast<int64_t>(record.ptx.size())).Run());
  if (record.cubin) LS_TRY(WriteCubin(database, record.key, *record.cubin));
  return transaction.Commit();
}

Status VisitKernels(Database& database,
                    const std::function<Status(const std::string& key, const KernelRow& row)>& visit) {
  LS_ASSIGN(Statement keys, database.Prepare("SELECT key FROM kernels ORDER BY key"));
  for (;;) {
    LS_ASSIGN(const bool found, keys.Step());
    if (!found) return Ok();
    LS_ASSIGN(const KernelRow row, ReadKernel(database, keys.TextAt(0)));
    LS_TRY(visit(keys.TextAt(0), row));
  }
}

Status ReplaceKernel(Database& database, const KernelRecord& r) {
  LS_ASSIGN(
      Statement insert,
      database.Prepare("INSERT OR REPLACE INTO kernels (key, target, problem, schedule, generator, ptx, checksum, "
                       "created, last_used, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Text(r.key).Text(r.target).Text(r.problem).Text(r.schedule).Text(r.generator).Blob(r.ptx).Text(Checksum(r));
  LS_TRY(insert.Integer(r.created).Integer(r.last_used).Integer(static_cast<int64_t>(r.ptx.size())).Run());
  return r.cubin ? WriteCubin(database, r.key, *r.cubin) : Ok();
}

Status EvictKernels(Database& database, int64_t max_bytes, const std::string& keep) {
  LS_ASSIGN(const int64_t bytes, database.Integer("SELECT ifnull(sum(bytes), 0) FROM kernels"));
  if (bytes <= max_bytes) return Ok();
  LS_ASSIGN(Statement evict, database.Prepare(R"sql(
DELETE FROM kernels WHERE key <> ?1 AND key IN (
  SELECT key FROM (SELECT key, sum(bytes) OVER (ORDER BY key = ?1 DESC, last_used DESC, key) AS running FROM kernels)
  WHERE running > ?2)
)sql"));
  return evict.Text(keep).Integer(max_bytes).Run();
}

Status WriteCubin(Database& database, const std::string& key, const CubinRecord& cubin) {
  LS_ASSIGN(Statement update,
            database.Prepare("UPDATE kernels SET cubin = ?, assembler = ?, cubin_checksum = ?, bytes = length(ptx) + ? "
                             "WHERE key = ?"));
  update.Blob(cubin.bytes).Text(cubin.assembler).Text(Checksum(key, cubin));
  return update.Integer(static_cast<int64_t>(cubin.bytes.size())).Text(key).Run();
}

Status TouchKernel(Database& database, const std::string& key, int64_t now) {
  LS_ASSIGN(Statement update, database.Prepare("UPDATE kernels SET last_used = ? WHERE key = ?"));
  return update.Integer(now).Text(key).Run();
}

Status SetAsideKernel(Database& database, const std::string& key, RowState state, int64_t now) {
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database));
  if (state == RowState::kDamaged) {
    LS_ASSIGN(Statement copy,
              database.Prepare("INSERT INTO damaged (origin, key, content, checksum, found) "
                               "SELECT 'kernels.ptx', key, ptx, checksum, ? FROM kernels WHERE key = ?"));
    LS_TRY(copy.Integer(now).Text(key).Run());
  }
  LS_ASSIGN(Statement copy,
            database.Prepare("INSERT INTO damaged (origin, key, content, checksum, found) SELECT 'kernels.cubin', key, "
                             "cubin, cubin_checksum, ? FROM kernels WHERE key = ? AND cubin IS NOT NULL"));
  LS_TRY(copy.Integer(now).Text(key).Run());
  LS_ASSIGN(Statement remove,
            database.Prepare(state == RowState::kDamaged
                                 ? "DELETE FROM kernels WHERE key = ?"
                                 : "UPDATE kernels SET cubin = NULL, assembler = NULL, cubin_checksum = NULL, "
                                   "bytes = length(ptx) WHERE key = ?"));
  LS_TRY(remove.Text(key).Run());
  return transaction.Commit();
}

}  // namespace laneshift::store
