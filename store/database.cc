#include "store/database.h"

#include <sqlite3.h>

#include <new>
#include <utility>

#include "base/check.h"
#include "base/file_size_signal.h"
#include "base/text.h"
#include "store/one_line.h"

namespace laneshift::store {
namespace {

using base::Cat;

ErrorCode CodeOf(int result) {
  // SQLite's codes are open-ended; the low byte is the primary one.
  switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
      return ErrorCode::kTimeout;
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
      return ErrorCode::kResourceExhausted;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorCode::kUnsupported;
    case SQLITE_CANTOPEN:
      return ErrorCode::kNotFound;
    case SQLITE_IOERR:
      return ErrorCode::kDriver;
    default:
      return ErrorCode::kInternal;
  }
}

bool LacksMemory(int result) { return (result & 0xff) == SQLITE_NOMEM || result == SQLITE_IOERR_NOMEM; }

// SQLite's messages quote the SQL that they are about, and that of a file's schema may have any number of lines.
Error SqliteError(int result, const char* detail) {
  // As where operator new lacks it: not a failure of the file, which would end the use of it.
  if (LacksMemory(result)) throw std::bad_alloc();
  std::string text = sqlite3_errstr(result & 0xff);
  if (detail != nullptr && text != detail) text += Cat(" (", OneLine(detail), ")");
  return MakeError(CodeOf(result), std::move(text));
}

// Far wider than any record or statement of the store, and narrower than SQLite's limit.
constexpr std::pair<int, int> kLimits[] = {
    {SQLITE_LIMIT_LENGTH, 256 << 20},  // of a value or a row: a kernel's code is well below
    {SQLITE_LIMIT_SQL_LENGTH, 64 << 10},
    {SQLITE_LIMIT_COLUMN, 64},
    {SQLITE_LIMIT_EXPR_DEPTH, 100},
    {SQLITE_LIMIT_COMPOUND_SELECT, 8},
    {SQLITE_LIMIT_VDBE_OP, 25000},
    {SQLITE_LIMIT_FUNCTION_ARG, 16},
    {SQLITE_LIMIT_ATTACHED, 1},  // VACUUM's own
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 64},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};
// Of SQLite's virtual machine: some tenths of a millisecond.
constexpr int kInstructionsBetweenLooks = 100000;

void BeginStep(StepClock& clock) { clock.began = std::chrono::steady_clock::now(); }

int StepExpired(void* of_connection) {
  const auto* clock = static_cast<const StepClock*>(of_connection);
  return clock->limit.count() > 0 && std::chrono::steady_clock::now() - clock->began > clock->limit ? 1 : 0;
}

}  // namespace

Statement::Statement(sqlite3_stmt* handle, StepClock* clock) : handle_(handle), clock_(clock) {}
void Statement::Finalize::operator()(sqlite3_stmt* handle) const {
  // May end a transaction, which writes.
  const base::FileSizeSignalGuard guard;
  sqlite3_finalize(handle);
}

Statement& Statement::Text(std::string_view value) {
  int result = sqlite3_bind_text64(handle_.get(), ++bound_, value.data() ? value.data() : "", value.size(),
                                   SQLITE_TRANSIENT, SQLITE_UTF8);
  if (failed_bind_ == SQLITE_OK) failed_bind_ = result;
  return *this;
}

Statement& Statement::Blob(std::string_view value) {
  int result =
      sqlite3_bind_blob64(handle_.get(), ++bound_, value.data() ? value.data() : "", value.size(), SQLITE_TRANSIENT);
  if (failed_bind_ == SQLITE_OK) failed_bind_ = result;
  return *this;
}

Statement& Statement::Integer(int64_t value) {
  int result = sqlite3_bind_int64(handle_.get(), ++bound_, value);
  if (failed_bind_ == SQLITE_OK) failed_bind_ = result;
  return *this;
}

Statement& Statement::Real(double value) {
  int result = sqlite3_bind_double(handle_.get(), ++bound_, value);
  if (failed_bind_ == SQLITE_OK) failed_bind_ = result;
  return *this;
}

Statement& Statement::Null() {
  int result = sqlite3_bind_null(handle_.get(), ++bound_);
  if (failed_bind_ == SQLITE_OK) failed_bind_ = result;
  return *this;
}

Result<bool> Statement::Step() {
  if (failed_bind_ != SQLITE_OK) return SqliteError(failed_bind_, "binding a parameter");
  const base::FileSizeSignalGuard guard;
  BeginStep(*clock_);
  int result = sqlite3_step(handle_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  sqlite3* database = sqlite3_db_handle(handle_.get());
  return SqliteError(sqlite3_extended_errcode(database), sqlite3_errmsg(database));
}

Status Statement::Run() {
  for (;;) {
    LS_ASSIGN(bool row, Step());
    if (!row) return Ok();
  }
}

void Statement::Attempt() {
  const base::FileSizeSignalGuard guard;
  BeginStep(*clock_);
  // A failure here means that SQLite has rolled back by itself.
  (void)sqlite3_step(handle_.get());
}

bool Statement::IsNull(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }

std::string Statement::TextAt(int column) const {
  // As a blob: text may hold any byte, and the length is then known without a scan.
  const void* bytes = sqlite3_column_blob(handle_.get(), column);
  int size = sqlite3_column_bytes(handle_.get(), column);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

int64_t Statement::IntegerAt(int column) const { return sqlite3_column_int64(handle_.get(), column); }
double Statement::RealAt(int column) const { return sqlite3_column_double(handle_.get(), column); }

Database::Database(sqlite3* handle) : clock_(std::make_unique<StepClock>()), handle_(handle) {}

void Database::Close::operator()(sqlite3* handle) const {
  // The last to close a file copies its log into it.
  const base::FileSizeSignalGuard guard;
  sqlite3_close_v2(handle);
}

// Before anything of the file is read: its schema may come from anybody.
void Database::Harden() {
  sqlite3* const handle = handle_.get();
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  for (const auto& [limit, value] : kLimits) sqlite3_limit(handle, limit, value);
  sqlite3_progress_handler(handle, kInstructionsBetweenLooks, StepExpired, clock_.get());
}

void Database::LimitSteps(std::chrono::milliseconds limit) { clock_->limit = limit; }

Result<Database> Database::Open(const std::string& path, Access access, int busy_timeout_ms) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
  flags |= access == Access::kCreate ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const base::FileSizeSignalGuard guard;
  std::string uri = "file:";
  for (char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      uri += c == '%' ? "%25" : c == '?' ? "%3f" : "%23";
    } else {
      uri += c;
    }
  }
  if (access == Access::kImmutable) uri += "?immutable=1";
  sqlite3* handle = nullptr;
  int result = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  Database database(handle);  // SQLite returns a handle to close even when opening fails
  if (result != SQLITE_OK) return SqliteError(result, handle ? sqlite3_errmsg(handle) : nullptr);
  // SQLite opens a read-only file without complaint, even for writing.
  if (access == Access::kCreate && sqlite3_db_readonly(handle, "main") == 1) {
    return SqliteError(SQLITE_READONLY, "no permission to write the file");
  }
  sqlite3_busy_timeout(handle, busy_timeout_ms);
  database.Harden();
  LS_TRY(database.Execute("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0"));
  return database;
}

Result<Database> Database::OpenInMemory() {
  sqlite3* handle = nullptr;
  int result = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE, nullptr);
  Database database(handle);
  if (result != SQLITE_OK) return SqliteError(result, nullptr);
  database.Harden();
  return database;
}

Result<Database> Database::CopyIntoMemory() {
  LS_ASSIGN(Database copy, OpenInMemory());
  sqlite3_backup* backup = sqlite3_backup_init(copy.handle_.get(), "main", handle_.get(), "main");
  if (backup == nullptr) {
    return SqliteError(sqlite3_extended_errcode(copy.handle_.get()), sqlite3_errmsg(copy.handle_.get()));
  }
  (void)sqlite3_backup_step(backup, -1);
  const int result = sqlite3_backup_finish(backup);
  if (result != SQLITE_OK) return SqliteError(result, "copying it into memory");
  return copy;
}

Status Database::Execute(const std::string& sql) {
  const base::FileSizeSignalGuard guard;
  BeginStep(*clock_);
  int result = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (result == SQLITE_OK) return Ok();
  return SqliteError(sqlite3_extended_errcode(handle_.get()), sqlite3_errmsg(handle_.get()));
}

Result<Statement> Database::Prepare(std::string_view sql) {
  const base::FileSizeSignalGuard guard;  // preparing reads the schema, which may replay a log
  sqlite3_stmt* statement = nullptr;
  int result = sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (result != SQLITE_OK) {
    return SqliteError(sqlite3_extended_errcode(handle_.get()), sqlite3_errmsg(handle_.get()));
  }
  return Statement(statement, clock_.get());
}

Result<int64_t> Database::Integer(std::string_view sql) {
  LS_ASSIGN(Statement statement, Prepare(sql));
  LS_ASSIGN(bool row, statement.Step());
  return row ? statement.IntegerAt(0) : 0;
}

Result<std::string> Database::Text(std::string_view sql) {
  LS_ASSIGN(Statement statement, Prepare(sql));
  LS_ASSIGN(bool row, statement.Step());
  return row ? statement.TextAt(0) : std::string();
}

int64_t Database::Changes() const { return sqlite3_changes64(handle_.get()); }

Result<Transaction> Transaction::Begin(Database& database) {
  // Before it is needed: where memory ends the transaction, there may be none to prepare it with.
  LS_ASSIGN(Statement rollback, database.Prepare("ROLLBACK"));
  // IMMEDIATE: waits for the write lock here, under the busy timeout, and not in the middle of the transaction.
  LS_TRY(database.Execute("BEGIN IMMEDIATE"));
  return Transaction(database, std::move(rollback));
}

Transaction::Transaction(Database& database, Statement rollback)
    : database_(&database), rollback_(std::move(rollback)) {}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)), rollback_(std::move(other.rollback_)) {}

Transaction::~Transaction() {
  if (database_ != nullptr) rollback_.Attempt();
}

Status Transaction::Commit() {
  LS_TRY(database_->Execute("COMMIT"));
  database_ = nullptr;
  return Ok();
}

}  // namespace laneshift::store
