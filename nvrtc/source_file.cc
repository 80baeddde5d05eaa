#include "nvrtc/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/text.h"

namespace laneshift::nvrtc {

using base::Cat;

Result<std::string> ReadSourceFile(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return MakeError(ErrorCode::kInvalidArgument, Cat(path, " ", why));
  };
  // O_NONBLOCK: opening a FIFO would wait for somebody who writes.
  const base::Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.is_open() && (errno == ENOENT || errno == ENOTDIR)) {
    return MakeError(ErrorCode::kNotFound, Cat(path, " cannot be opened: ", std::strerror(errno)));
  }
  if (!file.is_open()) return refused(Cat("cannot be opened: ", std::strerror(errno)));
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return refused(Cat("cannot be looked at: ", std::strerror(errno)));
  if (S_ISDIR(status.st_mode)) return refused("is a directory; name a file of CUDA C++");
  if (!S_ISREG(status.st_mode)) return refused("is no regular file; name a file of CUDA C++");
  std::string text;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t count = read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refused(Cat("cannot be read: ", std::strerror(errno)));
    if (count == 0) return text;
    text.append(chunk, static_cast<size_t>(count));
    // Files of /proc say that they have no bytes.
    if (static_cast<int64_t>(text.size()) > kMaxSourceBytes) {
      return refused(Cat("has more than ", kMaxSourceBytes >> 20, " MiB, which no source of an epilogue has"));
    }
  }
}

}  // namespace laneshift::nvrtc
