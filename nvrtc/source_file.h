// SourceFile: users' sources and what they include, as files are read here: regular ones only, of a bounded size,
// without ever waiting for one.
//
// Thread-safety: free functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "laneshift/result.h"

namespace laneshift::nvrtc {

// Of one file. CUDA's own largest header has half of a MiB.
inline constexpr int64_t kMaxSourceBytes = int64_t{8} << 20;

// kNotFound: there is none. kInvalidArgument, by name: it is no regular file, too large, or cannot be read.
Result<std::string> ReadSourceFile(const std::string& path);

}  // namespace laneshift::nvrtc
