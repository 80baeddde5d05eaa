// ReadFile: a whole file as text.
//
// Thread-safety: pure, but for the file.
#pragma once

#include <cstdint>
#include <string>

#include "laneshift/result.h"

namespace laneshift::base {

inline constexpr uint64_t kMaxSourceBytes = uint64_t{64} << 20;  // of text that a person may have written

// kInvalidArgument: "PATH: is a directory", or it has more than `most` bytes.
Result<std::string> ReadFile(const std::string& path, uint64_t most = kMaxSourceBytes);

}  // namespace laneshift::base
