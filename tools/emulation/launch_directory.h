// LaunchDirectory: where the files that a launch file names may be.
//
// A launch file may come from anybody: what it writes stays inside its own directory, whatever `..`, absolute paths and
// symbolic links it uses, and what it reads are regular files. Thread-safety: none needed; it looks at the file system
// when asked, and who changes directories meanwhile is not guarded against.
#pragma once

#include <string>

#include "laneshift/result.h"

namespace laneshift::tools {

struct LaunchDirectory {
  std::string path;             // relative names count from here; empty: the working directory
  bool allows_outside = false;  // outputs too may be anywhere

  // The path of a file to read. The Error says what is there instead.
  Result<std::string> ToRead(const std::string& name) const;
  // The path of a file to make or to replace.
  Result<std::string> ToWrite(const std::string& name) const;
};

}  // namespace laneshift::tools
