#include "tests/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace laneshift::tests {
namespace {

namespace fs = std::filesystem;

// Names that .gitignore lists.
bool IsIgnored(const fs::path& entry, bool at_root) {
  const std::string name = entry.filename().string();
  return name == ".git" || name == "compile_commands.json" ||
         (at_root && (name.starts_with("build") || name == ".cache"));
}

SourceFile Read(const fs::path& root, const fs::path& file) {
  SourceFile source{.path = file.lexically_relative(root).generic_string(), .lines = {}};
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) source.lines.push_back(line);
  return source;
}

}  // namespace

std::vector<SourceFile> ReadSourceTree() {
  const fs::path root = LANESHIFT_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    if (IsIgnored(it->path(), it.depth() == 0)) {
      if (it->is_directory()) it.disable_recursion_pending();
    } else if (it->is_regular_file()) {
      files.push_back(Read(root, it->path()));
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::string CodeOf(std::string_view line) {
  std::string code;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
        code += c;
      }
      continue;
    }
    if (c == '/' && i + 1 < line.size() && line[i + 1] == '/') break;
    // A quote between digits separates them: 1'000'000.
    const bool separator = c == '\'' && !code.empty() && std::isalnum(static_cast<unsigned char>(code.back()));
    if ((c == '"' || c == '\'') && !separator) quote = c;
    code += c;
  }
  return code;
}

}  // namespace laneshift::tests
