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

// Closes and renames the file after a corruption; the sentence for the warning.
std::string SetAsideDisk(Disk& disk, int lock_timeout_ms);

}  // namespace laneshift::store
