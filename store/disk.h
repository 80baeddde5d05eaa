// Disk: the opened database file, or why there is none. Carries out the opening policy of store.h.
//
// Thread-safety: none; the Store serialises.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/database.h"
#include "store/store.h"
#include "store/store_file.h"

namespace laneshift::store {

struct Disk {
  std::optional<Database> database;
  bool writable = false;
  std::string path;
  std::string journal;
  std::optional<FileIdentity> identity;
  std::vector<std::string> warnings;
};

Disk OpenDisk(const StoreOptions& options);

// The file at `options.directory`/kStoreFileName or any other: made if missing, its schema brought up to date.
struct OpenedFile {
  Database database;
  std::string journal;
};
Result<OpenedFile> OpenToWrite(const std::string& path, const StoreOptions& options);

// The file as it is: a transaction that was interrupted is undone, nothing else is changed, and an older schema is
// brought up to date in memory. Where not even a lock can be taken, it is read without.
Result<Database> OpenToRead(const std::string& path, int busy_timeout_ms);
// Never with a lock.
Result<Database> OpenSystem(const std::string& path, int busy_timeout_ms);

// Closes and renames the file after a corruption; the sentence for the warning.
std::string SetAsideDisk(Disk& disk, int lock_timeout_ms);

}  // namespace laneshift::store
