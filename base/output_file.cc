#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file_size_signal.h"
#include "base/text.h"

namespace laneshift::base {
namespace {

constexpr size_t kMostPending = size_t{1} << 16;

Error Unwritten(ErrorCode code, const std::string& path, int failure) {
  return MakeError(code, Cat(path, ": cannot be written: ", std::strerror(failure)));
}

}  // namespace

Result<OutputFile> OutputFile::Create(std::string path) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (!file.is_open()) return Unwritten(ErrorCode::kInvalidArgument, path, errno);
  return OutputFile(std::move(path), std::move(file));
}

void OutputFile::Write(std::string_view bytes) {
  pending_.append(bytes);
  if (pending_.size() >= kMostPending) Flush();
}

void OutputFile::Flush() {
  const FileSizeSignalGuard guard;
  std::string_view left = pending_;
  while (failure_ == 0 && !left.empty()) {
    const ssize_t count = write(file_.get(), left.data(), left.size());
    if (count >= 0) {
      left.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      failure_ = errno;
    }
  }
  pending_.clear();
}

Status OutputFile::Close() {
  Flush();
  // Not tried again: the descriptor is gone whatever close(2) says.
  if (close(file_.Release()) != 0 && errno != EINTR && failure_ == 0) failure_ = errno;
  if (failure_ == 0) return Ok();
  return Unwritten(ErrorCode::kDriver, path_, failure_);
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  LS_ASSIGN(OutputFile file, OutputFile::Create(path));
  file.Write(bytes);
  return file.Close();
}

}  // namespace laneshift::base
