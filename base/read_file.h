// ReadFile: a whole file as text; and what else may lie at a path.
//
// Thread-safety: pure, but for the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "laneshift/result.h"

namespace laneshift::base {

inline constexpr uint64_t kMaxSourceBytes = uint64_t{64} << 20;  // of text that a person may have written

enum class Readable : uint8_t {
  kAnything,     // pipes and devices, too: their reader waits for whoever writes
  kRegularFile,  // everything else is refused without waiting for it
};

// kInvalidArgument: "PATH: is a directory", it has more than `most` bytes, or it cannot be opened or read.
Result<std::string> ReadFile(const std::string& path, uint64_t most = kMaxSourceBytes,
                             Readable readable = Readable::kAnything);

// "a directory", "a FIFO", …, by st_mode of stat(2).
std::string_view KindOfFile(mode_t mode);

// kInvalidArgument: there is nothing at `path`, or no regular file, in ReadFile's words. Links are followed.
Status CheckRegularFile(const std::string& path);

}  // namespace laneshift::base
