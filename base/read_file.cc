#include "base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
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

Error Irregular(const std::string& path, mode_t mode) {
  return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": is ", KindOfFile(mode), "; only regular files are read"));
}

}  // namespace

std::string_view KindOfFile(mode_t mode) {
  return S_ISREG(mode)    ? "a regular file"
         : S_ISDIR(mode)  ? "a directory"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISCHR(mode)  ? "a character device"
         : S_ISBLK(mode)  ? "a block device"
         : S_ISSOCK(mode) ? "a socket"
                          : "something else";
}

Status CheckRegularFile(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return Failed(path, "opened");
  return S_ISREG(status.st_mode) ? Ok() : Irregular(path, status.st_mode);
}

// Not by a stream: iterators over the buffer of one throw where a read fails, as that of a directory does.
Result<std::string> ReadFile(const std::string& path, uint64_t most, Readable readable) {
  const bool regular = readable == Readable::kRegularFile;
  // O_NONBLOCK: opening a FIFO would wait for somebody who writes.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK | O_NOCTTY : 0)));
  if (!file.is_open()) return Failed(path, "opened");
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return Failed(path, "read");
  if (regular && !S_ISREG(status.st_mode)) return Irregular(path, status.st_mode);
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
