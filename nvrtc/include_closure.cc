#include "nvrtc/include_closure.h"

#include <filesystem>
#include <optional>
#include <set>

#include "base/read_file.h"
#include "base/text.h"

namespace laneshift::nvrtc {

Result<std::string> ReadSource(const std::string& path) {
  return base::ReadFile(path, kMaxSourceBytes, base::Readable::kRegularFile);
}

namespace {

namespace fs = std::filesystem;

// The files that a source includes, without itself; CUDA's own headers are not followed.
constexpr size_t kMaxFiles = 1000;

class Walk {
 public:
  Walk(base::Fingerprinter& digest, const IncludePath& path) : digest_(digest), path_(path) {}

  Status Visit(std::string_view text, const std::string& source_directory) {
    for (const Include& include : IncludesOf(text)) LS_TRY(Add(include, source_directory));
    return Ok();
  }

 private:
  // The first file of that name; directories of that name are skipped, as compilers do.
  static Result<std::optional<std::string>> Read(const fs::path& path) {
    std::error_code unreadable;
    if (!fs::exists(path, unreadable) || fs::is_directory(path, unreadable)) return std::optional<std::string>();
    LS_ASSIGN(std::string text, ReadSource(path));
    return std::optional(std::move(text));
  }

  Status Add(const Include& include, const std::string& source_directory) {
    std::vector<std::string> directories;
    if (include.quoted && !source_directory.empty()) directories.push_back(source_directory);
    directories.insert(directories.end(), path_.own.begin(), path_.own.end());
    for (const std::string& directory : directories) {
      const fs::path file = fs::path(directory) / include.name;
      LS_ASSIGN(const auto text, Read(file));
      if (!text) continue;
      LS_ASSIGN(const bool first, Note(file, include, *text));
      return first ? Visit(*text, file.parent_path()) : Ok();
    }
    for (const std::string& directory : path_.toolkit) {
      const fs::path file = fs::path(directory) / include.name;
      LS_ASSIGN(const auto text, Read(file));
      if (!text) continue;
      LS_ASSIGN(const bool first, Note(file, include, *text));
      (void)first;
      return Ok();
    }
    digest_.Text("missing", include.name);
    return Ok();
  }

  // False: it was already there.
  Result<bool> Note(const fs::path& file, const Include& include, const std::string& text) {
    if (!seen_.insert(file.lexically_normal()).second) return false;
    if (seen_.size() > kMaxFiles) {
      return MakeError(ErrorCode::kInvalidArgument, base::Cat("it includes more than ", kMaxFiles, " files"));
    }
    digest_.Text(include.name, text);
    return true;
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

Status AddIncludes(base::Fingerprinter& digest, std::string_view source, const IncludePath& path) {
  return Walk(digest, path).Visit(source, path.source_directory);
}

}  // namespace laneshift::nvrtc
