// The files that a source includes, found without compiling it: by its directives, under whatever conditions. Where a
// macro names the file (`#include TABLE`), every file counts that any #define names.
//
// Thread-safety: reads files; no shared state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fingerprint.h"
#include "laneshift/result.h"

namespace laneshift::nvrtc {

// Of one file. CUDA's own largest header has half of a MiB.
inline constexpr int64_t kMaxSourceBytes = int64_t{8} << 20;

// A source or an include. kInvalidArgument, by name: it is no regular file, too large, or cannot be read.
Result<std::string> ReadSource(const std::string& path);

struct IncludePath {
  std::string source_directory;      // of the source: for includes in quotes; empty: none
  std::vector<std::string> own;      // users' directories
  std::vector<std::string> toolkit;  // CUDA's: what is found there includes only what is there, too
};

// Adds the contents of all files that `source` includes, directly or not; for CUDA's headers only their names. A file
// that is not found adds its name. kInvalidArgument, by name: one that is not a regular file or too large, or too many.
Status AddIncludes(base::Fingerprinter& digest, std::string_view source, const IncludePath& path);

// What the directives of `text` name: files, and whether their names are in quotes.
struct Include {
  std::string name;
  bool quoted = false;
};
struct Directives {
  std::vector<Include> includes;
  bool by_macro = false;         // it includes what a macro names, too
  std::vector<Include> defined;  // the names in #define, which may be those of files
};
Directives DirectivesOf(std::string_view text);

}  // namespace laneshift::nvrtc
