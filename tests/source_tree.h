// The files of this repository, as the tests of its structure read them.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace laneshift::tests {

struct SourceFile {
  std::string path;                // from the root of the repository, with '/'
  std::vector<std::string> lines;  // without line ends

  bool Under(std::string_view prefix) const { return path.starts_with(prefix); }
  bool IsCpp() const { return path.ends_with(".h") || path.ends_with(".cc"); }
  bool IsTest() const { return Under("tests/") || path.ends_with("_test.cc"); }
  std::string Name() const { return path.substr(path.rfind('/') + 1); }
  // "path:line", counted from 1, as compilers print it.
  std::string At(size_t line_index) const { return path + ":" + std::to_string(line_index + 1); }
};

// Every file but build trees, caches and git's own, sorted by path.
std::vector<SourceFile> ReadSourceTree();

// A line of C++ without its `//` comment and with the contents of its string literals removed.
std::string CodeOf(std::string_view line);

}  // namespace laneshift::tests
