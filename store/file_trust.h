// FileTrust: whether the files of a store are such that what they say may be believed (docs/security.md).
//
// A store is code: its PTX and cubins run, and SQLite parses the rest. So nobody but the user and root may be able to
// have written it. Links are followed where they are the user's or root's own. Files are looked at by name and never
// opened: closing a descriptor of a database drops the locks that SQLite holds in this process, and opening a FIFO
// waits. Thread-safety: free functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "laneshift/result.h"

namespace laneshift::store {

// kUnsupported, with what is wrong and how to fix it: the database, a file that SQLite keeps next to it, or a directory
// or link on the way to them, from the root on, belongs to another user or may be written by others, or one of the
// files is not a regular file. Missing files are accepted. A directory on the way may be writable if it is sticky; the
// one that holds the files may not: others could make a -wal or a -journal between this check and SQLite's.
Status CheckTrust(const std::string& database_path);

// Whether a user namespace with this /proc/self/uid_map has root; where it has not, directories of the kernel's
// overflow user on the way to the files are taken for root's.
bool MapsRoot(std::string_view uid_map);

// Whether there is a regular file, or nothing, at `path`: kUnsupported otherwise.
Status CheckRegular(const std::string& path);

// Makes the directory, and what leads to it, where it is missing, for the user only.
Status MakePrivateDirectory(const std::string& path);

// A file that only carries locks, opened and made if missing; -1 if it cannot be, or is no regular file. Never waits.
int OpenLockFile(const std::string& path);

}  // namespace laneshift::store
