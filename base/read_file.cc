#include "base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/text.h"

namespace laneshift::base {
namespace {

Error Failed(const std::string& path, std::string_view what) {
  if (errno == EISDIR) return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": is a directory"));
  return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": cannot be ", what, ": ", std::strerror(errno)));
}

}  // namespace

// Not by a stream: iterators over the buffer of one throw where a read fails, as that of a directory does.
Result<std::string> ReadFile(const std::string& path, uint64_t most) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return Failed(path, "opened");
  std::string text;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t count = read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed(path, "read");
    if (count == 0) return text;
    text.append(chunk, static_cast<size_t>(count));
    if (text.size() > most) {
      return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": has more than ", most, " bytes, which are the most"));
    }
  }
}

}  // namespace laneshift::base
