// Where the verbs of `db` find records: databases, directories that hold one, and JSON lines, distinguished by their
// contents.
#pragma once

#include <string>
#include <vector>

#include "store/archive.h"
#include "tools/settings.h"

namespace laneshift::tools {

// The database of `path`: the file, or the one in the directory. Empty: the user's own. kInvalidArgument: there is
// none, and why.
Result<std::string> DatabasePath(const std::string& path, const Settings& settings);

// The records of a database or of a text file; "-" is standard input. Errors name the file and the line.
Result<store::RecordSource> OpenRecords(const std::string& path, const Settings& settings);

// All of them, in the order of the source.
Result<std::vector<store::Record>> ReadRecords(const store::RecordSource& source);

}  // namespace laneshift::tools
