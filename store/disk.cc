#include "store/disk.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "store/schema.h"

namespace laneshift::store {
namespace {

using base::Cat;

struct OpenedFile {
  Database database;
  std::string journal;
};

Result<OpenedFile> OpenToWrite(const std::string& path, const StoreOptions& options) {
  LS_ASSIGN(Database database, Database::Open(path, Database::Access::kCreate, options.busy_timeout_ms));
  // Refuses other programs' and newer files before anything is written to them.
  if (Result<int64_t> version = SchemaVersion(database); !version) return std::move(version).error();
  bool local = OnLocalFilesystem(std::filesystem::path(path).parent_path());
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

Result<OpenedFile> OpenToRead(const std::string& path, Database::Access access, const StoreOptions& options) {
  LS_ASSIGN(Database database, Database::Open(path, access, options.busy_timeout_ms));
  LS_ASSIGN(int64_t version, SchemaVersion(database));
  if (version != static_cast<int64_t>(Migrations().size())) {
    return MakeError(ErrorCode::kUnsupported, Cat("schema version ", version, " cannot be migrated in place"));
  }
  return OpenedFile{std::move(database), "read-only"};
}

// A file that may not be written is still worth reading.
std::optional<OpenedFile> OpenReadOnly(const std::string& path, const StoreOptions& options) {
  if (auto file = OpenToRead(path, Database::Access::kReadOnly, options)) return std::move(file).value();
  // Reading in WAL mode takes a -shm file, which a read-only directory cannot get. Without a log nobody is writing, and
  // the main file is complete.
  std::error_code failure;
  auto log_bytes = std::filesystem::file_size(path + "-wal", failure);
  if (!failure && log_bytes > 0) return std::nullopt;
  if (auto file = OpenToRead(path, Database::Access::kImmutable, options)) return std::move(file).value();
  return std::nullopt;
}

void Use(Disk& disk, OpenedFile file, bool writable) {
  disk.database = std::move(file.database);
  disk.journal = std::move(file.journal);
  disk.writable = writable;
  disk.identity = IdentityOf(disk.path);
}

}  // namespace

Disk OpenDisk(const StoreOptions& options) {
  Disk disk;
  std::error_code failure;
  std::filesystem::path directory(options.directory);
  std::filesystem::create_directories(directory, failure);
  disk.path = directory / kStoreFileName;
  if (!std::filesystem::is_directory(directory, failure)) {
    disk.warnings.push_back(Cat("store ", disk.path, ": the directory cannot be made; using memory"));
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
  std::optional<OpenedFile> readable;
  // Not where it is locked: that would wait a second time; and not where it is corrupt.
  if (error.code != ErrorCode::kTimeout && error.code != ErrorCode::kCorrupt)
    readable = OpenReadOnly(disk.path, options);
  disk.warnings.push_back(Cat("store ", disk.path, ": ", error.message,
                              readable ? "; reading it, and writing to memory" : "; using memory"));
  if (readable) Use(disk, std::move(*readable), false);
  return disk;
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
