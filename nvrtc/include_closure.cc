#include "nvrtc/include_closure.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

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

  Status Run(std::string_view source) {
    LS_TRY(Visit(source, path_.source_directory));
    return AddWhatMacrosName();
  }

 private:
  Status Visit(std::string_view text, const std::string& source_directory) {
    const Directives directives = DirectivesOf(text);
    for (const Include& include : directives.includes) LS_TRY(Add(include, source_directory));
    for (const Include& include : directives.defined) defined_.emplace(include.name, include.quoted);
    if (directives.by_macro) directories_.insert(source_directory);
    return Ok();
  }

  // Macros are not expanded: any name may be that of any such include. What is found may define and include more.
  Status AddWhatMacrosName() {
    std::set<std::tuple<std::string, std::string, bool>> tried;
    for (size_t before = 1; before != tried.size();) {
      before = tried.size();
      const auto directories = directories_;
      const auto defined = defined_;
      for (const std::string& directory : directories) {
        for (const auto& [name, quoted] : defined) {
          if (tried.emplace(directory, name, quoted).second) LS_TRY(Add({name, quoted}, directory));
        }
      }
    }
    return Ok();
  }

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
  std::set<std::pair<std::string, bool>> defined_;  // names of #define, and whether they are in quotes
  std::set<std::string> directories_;               // of files that include what a macro names
};

// Removes the name that begins `text`, in quotes or angle brackets.
std::optional<Include> TakeName(std::string_view& text) {
  if (text.empty() || (text[0] != '"' && text[0] != '<')) return std::nullopt;
  const size_t end = text.find(text[0] == '"' ? '"' : '>', 1);
  if (end == std::string_view::npos) return std::nullopt;
  Include include{std::string(text.substr(1, end - 1)), text[0] == '"'};
  text.remove_prefix(end + 1);
  return include;
}

}  // namespace

Directives DirectivesOf(std::string_view text) {
  Directives found;
  for (std::string_view line : base::Split(text, '\n')) {
    line = base::Trim(line);
    if (!line.starts_with('#')) continue;
    line = base::Trim(line.substr(1));
    if (line.starts_with("include")) {
      line = base::Trim(line.substr(line.starts_with("include_next") ? 12 : 7));
      if (auto include = TakeName(line)) {
        found.includes.push_back(std::move(*include));
      } else {
        found.by_macro = true;
      }
    } else if (line.starts_with("define")) {
      while ((line = line.substr(std::min(line.size(), line.find_first_of("\"<")))).size() > 1) {
        auto name = TakeName(line);
        if (!name) line.remove_prefix(1);
        if (name && !name->name.empty()) found.defined.push_back(std::move(*name));
      }
    }
  }
  return found;
}

Status AddIncludes(base::Fingerprinter& digest, std::string_view source, const IncludePath& path) {
  return Walk(digest, path).Run(source);
}

}  // namespace laneshift::nvrtc
