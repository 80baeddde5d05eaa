#include "store/disk.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "store/file_trust.h"
#include "store/schema.h"

namespace laneshift::store {
namespace {

using base::Cat;

Status RefuseSealed(Database& database) {
  LS_ASSIGN(const int64_t tables,
            database.Integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'properties'"));
  if (tables == 0) return Ok();
  LS_ASSIGN(const std::string sealed, database.Text("SELECT value FROM properties WHERE name = 'sealed'"));
  if (sealed.empty()) return Ok();
  return MakeError(ErrorCode::kUnsupported, "the file is sealed: it is read-only, as a system store");
}

// Beyond it a file is not copied into memory.
constexpr int64_t kMaxCopiedBytes = int64_t{4} << 30;

Result<Database> OpenUnchanged(const std::string& path, Database::Access access, int busy_timeout_ms) {
  LS_TRY(CheckRegular(path));
  LS_ASSIGN(Database database, Database::Open(path, access, busy_timeout_ms));
  LS_ASSIGN(const int64_t version, SchemaVersion(database));
  if (version == static_cast<int64_t>(Migrations().size())) return database;
  // It cannot be migrated where it is.
  LS_ASSIGN(const int64_t pages, database.Integer("PRAGMA page_count"));
  LS_ASSIGN(const int64_t page_bytes, database.Integer("PRAGMA page_size"));
  if (pages > kMaxCopiedBytes / page_bytes) {
    return MakeError(ErrorCode::kResourceExhausted, "its schema is an older one, and it is too large to be read so");
  }
  LS_ASSIGN(Database copy, database.CopyIntoMemory());
  LS_TRY(Migrate(copy));
  return copy;
}

// As everybody does who opens a file to write, and no one who opens it to read.
Status UndoInterrupted(const std::string& path, int busy_timeout_ms) {
  LS_TRY(CheckTrust(path));
  LS_ASSIGN(Database database, Database::Open(path, Database::Access::kCreate, busy_timeout_ms));
  const Result<int64_t> objects = database.Integer("SELECT count(*) FROM sqlite_schema");
  return objects ? Ok() : Status(objects.error());
}

void Use(Disk& disk, OpenedFile file, bool writable) {
  disk.database = std::move(file.database);
  disk.journal = std::move(file.journal);
  disk.writable = writable;
  disk.identity = IdentityOf(disk.path);
}

}  // namespace

Result<OpenedFile> OpenToWrite(const std::string& path, const StoreOptions& options) {
  LS_TRY(CheckTrust(path));
  LS_ASSIGN(Database database, Database::Open(path, Database::Access::kCreate, options.busy_timeout_ms));
  // Refuses other programs' and newer files before anything is written to them.
  if (Result<int64_t> version = SchemaVersion(database); !version) return std::move(version).error();
  LS_TRY(RefuseSealed(database));
  std::error_code unknown;  // an empty path is asked about then, which is no local filesystem
  bool local = OnLocalFilesystem(std::filesystem::absolute(path, unknown).parent_path());
  LS_ASSIGN(std::string journal, database.Text(local ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE"));
  // In WAL mode NORMAL keeps every commit through a crash of the process, and a sound file through a loss of power.
  LS_TRY(database.Execute(local ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL"));
  if (options.max_bytes > 0) {
    LS_ASSIGN(int64_t page_bytes, database.Integer("PRAGMA page_size"));
    LS_TRY(database.Execute(Cat("PRAGMA max_page_count=", std::max<int64_t>(1, options.max_bytes / page_bytes))));
  }
  LS_TRY(Migrate(database));
  return OpenedFile{std::move(database), std::move(journal)};
}

Result<Database> OpenToRead(const std::string& path, int busy_timeout_ms) {
  Result<Database> locking = OpenUnchanged(path, Database::Access::kReadOnly, busy_timeout_ms);
  if (locking) return locking;
  // Reading in WAL mode takes a -shm file, which a read-only directory cannot get. Without a log nobody is writing, and
  // the main file is complete.
  for (const char* suffix : {"-wal", "-journal"}) {
    std::error_code missing;
    const auto log_bytes = std::filesystem::file_size(path + suffix, missing);
    if (missing || log_bytes == 0) continue;
    if (UndoInterrupted(path, busy_timeout_ms))
      return OpenUnchanged(path, Database::Access::kReadOnly, busy_timeout_ms);
    return locking.error().Within(
        Cat("a transaction was interrupted, whose ", suffix, " file is undone or played back by whoever can write"));
  }
  Result<Database> immutable = OpenUnchanged(path, Database::Access::kImmutable, busy_timeout_ms);
  return immutable ? std::move(immutable) : std::move(locking);
}

Disk OpenDisk(const StoreOptions& options) {
  Disk disk;
  disk.path = std::filesystem::path(options.directory) / kStoreFileName;
  Status usable = MakePrivateDirectory(options.directory);
  if (usable) usable = CheckTrust(disk.path);
  if (!usable) {
    disk.warnings.push_back(Cat("store ", disk.path, ": ", usable.error().message, "; using memory"));
    return disk;
  }
  OpenLock lock(disk.path, options.busy_timeout_ms);
  std::optional<FileIdentity> identity = IdentityOf(disk.path);
  Result<OpenedFile> file = OpenToWrite(disk.path, options);
  if (!file && file.error().code == ErrorCode::kCorrupt) {
    Result<std::string> aside = SetAside(disk.path, identity);
    if (aside) {
      disk.warnings.push_back(Cat("store ", disk.path, ": ", file.error().message, "; the file was set aside as ",
                                  *aside, " and a new one begun"));
      file = OpenToWrite(disk.path, options);
    } else {
      file = std::move(aside).error();
    }
  }
  if (file) {
    Use(disk, std::move(file).value(), true);
    return disk;
  }
  const Error& error = file.error();
  std::optional<Database> readable;
  // Not where it is locked: that would wait a second time; and not where it is corrupt.
  if (error.code != ErrorCode::kTimeout && error.code != ErrorCode::kCorrupt) {
    if (auto opened = OpenToRead(disk.path, options.busy_timeout_ms)) readable = std::move(*opened);
  }
  disk.warnings.push_back(Cat("store ", disk.path, ": ", error.message,
                              readable ? "; reading it, and writing to memory" : "; using memory"));
  if (readable) Use(disk, {std::move(*readable), "read-only"}, false);
  return disk;
}

Result<Database> OpenSystem(const std::string& path, int busy_timeout_ms) {
  if (!IdentityOf(path)) return MakeError(ErrorCode::kNotFound, "there is no such file");
  LS_TRY(CheckTrust(path));
  return OpenUnchanged(path, Database::Access::kImmutable, busy_timeout_ms);
}

std::string SetAsideDisk(Disk& disk, int lock_timeout_ms) {
  disk.database.reset();
  disk.writable = false;
  OpenLock lock(disk.path, lock_timeout_ms);
  Result<std::string> aside = SetAside(disk.path, disk.identity);
  if (!aside) return Cat("it could not be set aside (", aside.error().message, "); using memory");
  if (aside->empty()) return "another process has set it aside; using memory";
  return Cat("it was set aside as ", *aside, "; using memory");
}

}  // namespace laneshift::store
