#include "nvrtc/include_closure.h"

#include <filesystem>
#include <iterator>
#include <optional>
#include <set>

#include "base/read_file.h"
#include "base/text.h"

namespace laneshift::nvrtc {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> ReadInclude(const fs::path& path) {
  std::error_code unreadable;
  if (!fs::is_regular_file(path, unreadable)) return std::nullopt;
  auto text = base::ReadFile(path);
  if (!text) return std::nullopt;
  return std::move(*text);
}

class Walk {
 public:
  Walk(base::Fingerprinter& digest, const IncludePath& path) : digest_(digest), path_(path) {}

  void Visit(std::string_view text, const std::string& beside) {
    for (const Include& include : IncludesOf(text)) Add(include, beside);
  }

 private:
  void Add(const Include& include, const std::string& beside) {
    std::vector<std::string> directories;
    if (include.quoted && !beside.empty()) directories.push_back(beside);
    directories.insert(directories.end(), path_.own.begin(), path_.own.end());
    for (const std::string& directory : directories) {
      const fs::path file = fs::path(directory) / include.name;
      const auto text = ReadInclude(file);
      if (!text) continue;
      if (!seen_.insert(file.lexically_normal()).second) return;
      digest_.Text(include.name, *text);
      return Visit(*text, file.parent_path());
    }
    for (const std::string& directory : path_.toolkit) {
      const fs::path file = fs::path(directory) / include.name;
      const auto text = ReadInclude(file);
      if (!text) continue;
      if (seen_.insert(file.lexically_normal()).second) digest_.Text(include.name, *text);
      return;
    }
    digest_.Text("missing", include.name);
  }

  base::Fingerprinter& digest_;
  const IncludePath& path_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<Include> IncludesOf(std::string_view text) {
  std::vector<Include> includes;
  for (std::string_view line : base::Split(text, '\n')) {
    line = base::Trim(line);
    if (!line.starts_with('#')) continue;
    line = base::Trim(line.substr(1));
    if (!line.starts_with("include")) continue;
    line = base::Trim(line.substr(7));
    if (line.size() < 2 || (line[0] != '"' && line[0] != '<')) continue;
    const size_t end = line.find(line[0] == '"' ? '"' : '>', 1);
    if (end == std::string_view::npos) continue;
    includes.push_back({line.substr(1, end - 1), line[0] == '"'});
  }
  return includes;
}

void AddIncludes(base::Fingerprinter& digest, std::string_view source, const IncludePath& path) {
  Walk(digest, path).Visit(source, path.beside);
}

}  // namespace laneshift::nvrtc
