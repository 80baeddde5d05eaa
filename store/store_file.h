// The database file on disk: its lock while it is opened, its identity, and how a corrupt one is moved out of the way.
//
// Thread-safety: free functions are thread-safe; an OpenLock belongs to one owner.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "laneshift/result.h"

namespace laneshift::store {

// Held while a file is examined, migrated or set aside, so that processes starting together do so one by one. Best
// effort: without permission to lock, or past the timeout, work goes on without; SQLite's own locks keep data sound.
class OpenLock {
 public:
  OpenLock(const std::string& database_path, int timeout_ms);
  OpenLock(const OpenLock&) = delete;
  OpenLock& operator=(const OpenLock&) = delete;
  ~OpenLock();

 private:
  int fd_;
};

using FileIdentity = std::pair<dev_t, ino_t>;
std::optional<FileIdentity> IdentityOf(const std::string& path);

// Renames the file to `<path>.corrupt-<UTC time>-<n>`, its -wal and -shm alongside, and returns the new name. Empty if
// the file at `path` is no longer `expected`: another process has set it aside already. REQUIRES: an OpenLock.
Result<std::string> SetAside(const std::string& path, std::optional<FileIdentity> expected);

// False on network and user-space filesystems, whose shared memory does not span hosts: SQLite's WAL must not be used.
bool OnLocalFilesystem(const std::string& path);

}  // namespace laneshift::store
