#include "store/archive.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/fingerprint.h"
#include "base/text.h"
#include "store/choice_table.h"
#include "store/disk.h"
#include "store/fact_table.h"
#include "store/kernel_table.h"
#include "store/schema.h"
#include "store/trial_table.h"

namespace laneshift::store {
namespace {

using base::Cat;

constexpr int kBusyTimeoutMs = 10000;
// Checking or compacting a file is one step.
constexpr std::chrono::minutes kStepLimit{30};

std::string NameOf(const ChoiceRecord& r) {
  return base::Join({r.problem, r.target, r.device, Cat("generator ", r.generator)}, " | ");
}
std::string NameOf(const FactRecord& r) { return Cat(r.device, " | ", r.name); }
std::string NameOf(const KernelRecord& r) { return r.key; }
std::string NameOf(const TrialRecord& r) { return TrialId(r); }

// Total orders: records with one key that compare equal are the same.
auto Rank(const ChoiceRecord& r) { return std::tuple(r.source, r.created, ChoiceChecksum(r)); }
auto Rank(const FactRecord& r) { return std::tuple(r.created, r.answer); }
template <typename R>
R GreaterOf(const R& a, const R& b) {
  return Rank(a) < Rank(b) ? b : a;
}
TrialRecord GreaterOf(const TrialRecord& a, const TrialRecord&) { return a; }
// The existing record; machine code of the other one is added only if its PTX is the same and there is none.
KernelRecord GreaterOf(const KernelRecord& a, const KernelRecord& b) {
  KernelRecord kept = a;
  if (!kept.cubin && a.ptx == b.ptx) kept.cubin = b.cubin;
  kept.last_used = std::max(a.last_used, b.last_used);
  return kept;
}

// The existing record of this name, if it is sound.
Result<std::optional<ChoiceRecord>> Present(Database& database, const ChoiceRecord& r) {
  LS_ASSIGN(std::vector<ChoiceRecord> choices, ReadChoices(database, r.problem, r.target, r.device));
  std::optional<ChoiceRecord> none;
  for (ChoiceRecord& choice : choices) {
    if (choice.generator == r.generator) return std::optional(std::move(choice));
  }
  return none;
}
Result<std::optional<FactRecord>> Present(Database& database, const FactRecord& r) {
  return ReadFact(database, r.device, r.name);
}
Result<std::optional<KernelRecord>> Present(Database& database, const KernelRecord& r) {
  LS_ASSIGN(KernelRow row, ReadKernel(database, r.key));
  std::optional<KernelRecord> none;
  if (row.state == RowState::kMissing || row.state == RowState::kDamaged) return none;
  return std::optional(std::move(row.record));
}

Status Replace(Database& database, const ChoiceRecord& r) { return ReplaceChoice(database, r); }
Status Replace(Database& database, const FactRecord& r) { return ReplaceFact(database, r); }
Status Replace(Database& database, const KernelRecord& r) { return ReplaceKernel(database, r); }

// Records of other files pass through here: what Put would refuse is refused.
Status CheckRecord(const Record& record) {
  if (const auto* trial = std::get_if<TrialRecord>(&record)) return CheckTrial(*trial);
  const auto* kernel = std::get_if<KernelRecord>(&record);
  const auto* choice = std::get_if<ChoiceRecord>(&record);
  const auto* fact = std::get_if<FactRecord>(&record);
  const bool whole = kernel != nullptr   ? !kernel->key.empty() && !kernel->ptx.empty()
                     : choice != nullptr ? !choice->problem.empty() && !choice->schedule.empty()
                                         : !fact->device.empty() && !fact->name.empty();
  if (whole) return Ok();
  return MakeError(ErrorCode::kInvalidArgument, Cat("a ", RecordKind(record), " without a name or contents"));
}

Status MergeInto(Database& database, const TrialRecord& record, MergeTally& tally) {
  LS_ASSIGN(const bool added, InsertTrial(database, CanonicalTrial(record, 0)));
  ++(added ? tally.added : tally.kept);
  return Ok();
}
template <typename R>
Status MergeInto(Database& database, const R& record, MergeTally& tally) {
  LS_ASSIGN(const std::optional<R> present, Present(database, record));
  const R merged = present ? GreaterOf(*present, record) : record;
  const bool same = present && merged == *present;
  ++(!present ? tally.added : same ? tally.kept : tally.replaced);
  return same ? Ok() : Replace(database, merged);
}

// Tolerance for clocks that are ahead; records with later dates would win over everything measured until then.
constexpr int64_t kClockSlackSeconds = 24 * 3600;

Status CheckDates(const Record& record, int64_t now) {
  const int64_t created = std::visit([](const auto& r) { return r.created; }, record);
  if (created >= 0 && created <= now + kClockSlackSeconds) return Ok();
  return MakeError(ErrorCode::kInvalidArgument, Cat("its date, ", created, ", is not one of the past"));
}

// Adds one record of another archive to the transaction.
Status Take(Database& database, const Record& record, const MergeRule& rule, int64_t now, MergeTally& tally) {
  LS_TRY(CheckRecord(record));
  if (std::holds_alternative<KernelRecord>(record) && !rule.kernels) {
    ++tally.left_out;
    return Ok();
  }
  Status welcome = CheckDates(record, now);
  if (welcome) welcome = rule.check(record);
  if (!welcome) {
    if (++tally.refused == 1) {
      tally.first_refusal = Cat(RecordKind(record), " ", RecordName(record), ": ", welcome.error().message);
    }
    return Ok();
  }
  return std::visit([&](const auto& r) { return MergeInto(database, r, tally); }, record);
}

Status VerifyFile(Database& database, Verification& found) {
  LS_ASSIGN(Statement check, database.Prepare("PRAGMA integrity_check(20)"));
  for (;;) {
    LS_ASSIGN(const bool row, check.Step());
    if (!row) break;
    if (check.TextAt(0) != "ok") found.findings.push_back(check.TextAt(0));
  }
  const std::pair<const char*, const char*> orphans[] = {
      {"SELECT count(*) FROM samples WHERE trial NOT IN (SELECT number FROM trials)", "samples of no trial"},
      {"SELECT count(*) FROM trials WHERE problem NOT IN (SELECT id FROM problems) OR device NOT IN "
       "(SELECT id FROM devices) OR schedule NOT IN (SELECT id FROM schedules)",
       "trials of an unknown problem, device or schedule"}};
  for (const auto& [sql, what] : orphans) {
    LS_ASSIGN(const int64_t count, database.Integer(sql));
    if (count > 0) found.findings.push_back(Cat(count, " ", what));
  }
  return Ok();
}

Status VerifyRecords(Database& database, Verification& found) {
  const auto note = [&](const Record& record, bool sound) {
    ++found.records;
    if (!sound) found.findings.push_back(Cat(RecordKind(record), " ", RecordName(record), ": the checksum is wrong"));
    return Ok();
  };
  LS_TRY(VisitChoices(database, note));
  LS_TRY(VisitFacts(database, note));
  const auto note_kernel = [&](const std::string& key, const KernelRow& row) -> Status {
    ++found.records;
    if (row.state == RowState::kDamaged) found.findings.push_back(Cat("kernel ", key, ": the checksum is wrong"));
    if (row.state == RowState::kCubinDamaged) {
      found.findings.push_back(Cat("kernel ", key, ": the checksum of its machine code is wrong"));
    }
    return Ok();
  };
  LS_TRY(VisitKernels(database, note_kernel));
  return VisitTrials(database, [&](const TrialRecord& record, const std::string& stored_id) -> Status {
    ++found.records;
    if (TrialId(record) != stored_id) found.findings.push_back(Cat("trial ", stored_id, ": its id is not its own"));
    return Ok();
  });
}

// Deletes, and returns the number of rows.
Result<int64_t> Finish(Database& database, Statement& statement) {
  LS_TRY(statement.Run());
  return database.Changes();
}
Result<int64_t> DeleteBefore(Database& database, std::string_view table, std::string_view time, int64_t since) {
  LS_ASSIGN(Statement statement, database.Prepare(Cat("DELETE FROM ", table, " WHERE ", time, " < ?")));
  return Finish(database, statement.Integer(since));
}
Result<int64_t> DeleteOtherGenerators(Database& database, std::string_view table, const std::string& generator) {
  // Users' functions were made by an NVRTC and not by a generator of laneshift: they stay until they are unused.
  const std::string_view functions = table == "kernels" ? " AND problem NOT LIKE 'function %'" : "";
  LS_ASSIGN(Statement statement, database.Prepare(Cat("DELETE FROM ", table, " WHERE generator <> ?", functions)));
  return Finish(database, statement.Text(generator));
}

Status DropOrphans(Database& database) {
  return database.Execute(
      "DELETE FROM samples WHERE trial NOT IN (SELECT number FROM trials);"
      "DELETE FROM problems WHERE id NOT IN (SELECT problem FROM trials);"
      "DELETE FROM devices WHERE id NOT IN (SELECT device FROM trials);"
      "DELETE FROM schedules WHERE id NOT IN (SELECT schedule FROM trials)");
}

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

Error FileError(std::string_view what, const std::string& path) {
  return MakeError(ErrorCode::kDriver, Cat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

// A database that is removed, whatever ends the work on it.
class PartialFile {
 public:
  explicit PartialFile(std::string path) : path_(std::move(path)), journal_(Cat(path_, "-journal")) { Remove(); }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() { Remove(); }
  const std::string& path() const { return path_; }

 private:
  void Remove() {
    (void)unlink(path_.c_str());
    (void)unlink(journal_.c_str());
  }
  std::string path_, journal_;
};

Status MarkSealed(const std::string& path, const std::string& digest) {
  LS_ASSIGN(Database copy, Database::Open(path, Database::Access::kCreate, kBusyTimeoutMs));
  LS_TRY(copy.Execute("PRAGMA journal_mode=DELETE"));
  LS_TRY(copy.Execute("DELETE FROM damaged"));
  LS_ASSIGN(Statement insert, copy.Prepare("INSERT OR REPLACE INTO properties (name, value) VALUES ('sealed', ?)"));
  LS_TRY(insert.Text(digest).Run());
  return Ok();
}

}  // namespace

std::string_view RecordKind(const Record& record) {
  constexpr std::string_view kKinds[] = {"choice", "fact", "kernel", "trial"};
  static_assert(std::size(kKinds) == std::variant_size_v<Record>);
  return kKinds[record.index()];
}

std::string RecordName(const Record& record) {
  return std::visit([](const auto& r) { return NameOf(r); }, record);
}

Record Greater(const Record& a, const Record& b) {
  LS_CHECK(a.index() == b.index(), "records of two kinds: ", RecordKind(a), " and ", RecordKind(b));
  return std::visit([&](const auto& r) { return Record(GreaterOf(r, std::get<std::decay_t<decltype(r)>>(b))); }, a);
}

bool SaysTheSame(const Record& a, const Record& b) {
  if (!std::holds_alternative<KernelRecord>(a) || !std::holds_alternative<KernelRecord>(b)) return a == b;
  KernelRecord left = std::get<KernelRecord>(a);
  const KernelRecord& right = std::get<KernelRecord>(b);
  left.created = right.created;
  left.last_used = right.last_used;
  return left == right;
}

Result<Archive> Archive::Open(const std::string& path, Mode mode) {
  if (mode == Mode::kRead) {
    if (!IdentityOf(path)) return MakeError(ErrorCode::kNotFound, Cat(path, ": there is no such file"));
    Result<Database> database = OpenToRead(path, kBusyTimeoutMs);
    if (!database) return database.error().Within(path);
    database->LimitSteps(kStepLimit);
    return Archive(std::move(*database));
  }
  Result<OpenedFile> file = OpenToWrite(path, {.directory = {}, .busy_timeout_ms = kBusyTimeoutMs});
  if (!file) return file.error().Within(path);
  file->database.LimitSteps(kStepLimit);
  return Archive(std::move(file->database));
}

Status Archive::Visit(const RecordVisitor& visit) {
  const auto only_sound = [&](const Record& record, bool sound) { return sound ? visit(record) : Ok(); };
  LS_TRY(VisitChoices(database_, only_sound));
  LS_TRY(VisitFacts(database_, only_sound));
  const auto sound_kernel = [&](const std::string&, const KernelRow& row) {
    return row.state == RowState::kDamaged ? Ok() : visit(row.record);
  };
  LS_TRY(VisitKernels(database_, sound_kernel));
  return VisitTrials(database_, [&](const TrialRecord& record, const std::string& stored_id) {
    return TrialId(record) == stored_id ? visit(record) : Ok();
  });
}

Result<MergeTally> Archive::Merge(const RecordSource& source, const MergeRule& rule) {
  MergeTally tally;
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database_));
  const int64_t now = std::time(nullptr);
  LS_TRY(source([&](const Record& record) { return Take(database_, record, rule, now, tally); }));
  LS_TRY(transaction.Commit());
  return tally;
}

Result<Verification> Archive::Verify() {
  Verification found;
  LS_TRY(VerifyFile(database_, found));
  LS_TRY(VerifyRecords(database_, found));
  return found;
}

Result<PruneTally> Archive::Prune(const PruneRule& rule) {
  PruneTally tally;
  LS_ASSIGN(Transaction transaction, Transaction::Begin(database_));
  if (rule.unused_since) {
    const int64_t since = *rule.unused_since;
    LS_ASSIGN(tally.kernels, DeleteBefore(database_, "kernels", "last_used", since));
    LS_ASSIGN(tally.trials, DeleteBefore(database_, "trials", "created", since));
  }
  if (rule.only_generator) {
    const std::pair<const char*, int64_t*> counts[] = {
        {"kernels", &tally.kernels}, {"choices", &tally.choices}, {"trials", &tally.trials}};
    for (const auto& [table, count] : counts) {
      LS_ASSIGN(const int64_t gone, DeleteOtherGenerators(database_, table, *rule.only_generator));
      *count += gone;
    }
  }
  if (rule.max_code_bytes) {
    LS_ASSIGN(const int64_t before, database_.Integer("SELECT count(*) FROM kernels"));
    LS_TRY(EvictKernels(database_, *rule.max_code_bytes, ""));
    LS_ASSIGN(const int64_t after, database_.Integer("SELECT count(*) FROM kernels"));
    tally.kernels += before - after;
  }
  if (rule.damaged) {
    LS_ASSIGN(tally.damaged, database_.Integer("SELECT count(*) FROM damaged"));
    LS_TRY(database_.Execute("DELETE FROM damaged"));
  }
  // Rolls the transaction back: everything stays as it was.
  if (rule.dry_run) return tally;
  LS_TRY(DropOrphans(database_));
  LS_TRY(transaction.Commit());
  // Compacts the file; if another process is reading, a later one will.
  (void)database_.Execute("VACUUM");
  return tally;
}

Status Archive::Seal(const std::string& path) {
  if (IdentityOf(path)) {
    return MakeError(ErrorCode::kInvalidArgument, Cat(path, " is there already; name a new file"));
  }
  LS_ASSIGN(const std::string digest, ChoiceDigest());
  const PartialFile copy(Cat(path, ".partial-", getpid()));
  const std::string& partial = copy.path();
  Status made = database_.Execute(Cat("VACUUM INTO ", Quoted(partial)));
  if (made) made = MarkSealed(partial, digest);
  if (made && chmod(partial.c_str(), 0444) != 0) made = FileError("make read-only", partial);
  // link() refuses a name that another process has taken meanwhile.
  if (made && link(partial.c_str(), path.c_str()) != 0) made = FileError("write", path);
  if (!made) return made.error().Within(Cat("sealing ", path));
  return Ok();
}

Result<std::string> Archive::ChoiceDigest() {
  base::Fingerprinter print;
  const auto add = [&](const ChoiceRecord& r, bool sound) -> Status {
    if (!sound || r.source == ChoiceSource::kRule) return Ok();
    print.Text("problem", r.problem).Text("target", r.target).Text("device", r.device).Text("generator", r.generator);
    print.Text("schedule", r.schedule).Text("source", SummedSourceName(r.source));
    return Ok();
  };
  LS_TRY(VisitChoices(database_, add));
  return print.Finish().Hex();
}

}  // namespace laneshift::store
