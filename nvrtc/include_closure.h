// The files that a source includes, found without compiling it: by its directives, under whatever conditions.
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

// The files that `text` names: their names, and whether they are in quotes.
struct Include {
  std::string_view name;
  bool quoted = false;
};
std::vector<Include> IncludesOf(std::string_view text);

}  // namespace laneshift::nvrtc
