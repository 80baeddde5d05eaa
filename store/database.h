// Database: one SQLite connection, with SQLite's result codes as Errors. database.cc is the only includer of sqlite3.h.
//
// Error codes: kCorrupt (the file is not a sound database), kTimeout (locked by another process), kResourceExhausted
// (disk full), kNotFound (cannot be opened), kUnsupported (read-only), kDriver (reading or writing
// failed), kInternal (SQL that does not fit the schema). A file may be anybody's: triggers, views and functions that
// its schema names do not run, records, statements and the time that they take are limited, and a write beyond the
// limit on file sizes is an error and no signal. Where SQLite gets no memory, std::bad_alloc is thrown, as where
// operator new gets none (base/host_memory.h); the connection can still be used. The store's policy is made of these
// (store.h). Thread-safety: none; the owner serialises. Not to be used across fork().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "laneshift/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace laneshift::store {

// When the current step of a connection's statements began, and how long it may take; zero: no limit.
struct StepClock {
  std::chrono::steady_clock::time_point began{};
  std::chrono::milliseconds limit{10000};
};

// One prepared statement. REQUIRES: its Database outlives it. Parameters are bound in order; columns are counted from
// 0.
class Statement {
 public:
  // Bound text and blobs are copied.
  Statement& Text(std::string_view value);
  Statement& Blob(std::string_view value);
  Statement& Integer(int64_t value);
  Statement& Real(double value);
  Statement& Null();

  // True if there is a row to read.
  Result<bool> Step();
  // For statements without rows.
  Status Run();
  // One step, whatever comes of it. Throws nothing.
  void Attempt();

  bool IsNull(int column) const;
  std::string TextAt(int column) const;  // also blobs
  int64_t IntegerAt(int column) const;
  double RealAt(int column) const;

 private:
  friend class Database;
  Statement(sqlite3_stmt* handle, StepClock* clock);
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  StepClock* clock_;  // the connection's
  int bound_ = 0;
  int failed_bind_ = 0;  // SQLite's first failure while binding, reported by Step()
};

class Database {
 public:
  enum class Access {
    kCreate,     // read and write; made if missing
    kReadOnly,   // takes locks and sees other processes' writes
    kImmutable,  // for directories where not even a lock can be taken; nobody may be writing
  };
  static Result<Database> Open(const std::string& path, Access access, int busy_timeout_ms);
  static Result<Database> OpenInMemory();
  // A copy of all of it, in memory.
  Result<Database> CopyIntoMemory();

  Status Execute(const std::string& sql);
  Result<Statement> Prepare(std::string_view sql);
  // The single integer or text that `sql` yields.
  Result<int64_t> Integer(std::string_view sql);
  Result<std::string> Text(std::string_view sql);
  // Rows that the last INSERT, UPDATE or DELETE changed.
  int64_t Changes() const;

  // How long one step of a statement may take, after which it ends with kTimeout. Zero: without limit. The default is
  // ten seconds: no query of the store on a sound file takes one.
  void LimitSteps(std::chrono::milliseconds limit);

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  explicit Database(sqlite3* handle);
  void Harden();
  // Outlives the connection, whose statements it bounds.
  std::unique_ptr<StepClock> clock_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// BEGIN IMMEDIATE … COMMIT; rolled back if it goes out of scope without Commit().
class Transaction {
 public:
  static Result<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status Commit();

 private:
  Transaction(Database& database, Statement rollback);
  Database* database_;  // null: committed or moved from
  Statement rollback_;
};

}  // namespace laneshift::store
