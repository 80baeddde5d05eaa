#include "store/file_trust.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/read_file.h"
#include "base/text.h"

namespace laneshift::store {
namespace {

using base::Cat;
namespace fs = std::filesystem;

constexpr std::string_view kCompanions[] = {"-wal", "-shm", "-journal"};
constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

Error Distrust(std::string what) { return MakeError(ErrorCode::kUnsupported, std::move(what)); }

Status CheckOwner(const std::string& path, const struct stat& status) {
  const uid_t own = geteuid();
  if (status.st_uid == own || status.st_uid == 0) return Ok();
  return Distrust(Cat(path, " belongs to user ", status.st_uid, ", and this process is user ", own,
                      "'s; name one of your own directories"));
}

// Nothing: there is nothing at `path`.
Result<std::optional<struct stat>> StatusOf(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) return std::optional(status);
  if (errno == ENOENT || errno == ENOTDIR) return std::optional<struct stat>();
  return Distrust(Cat(path, " cannot be looked at: ", std::strerror(errno)));
}

Status CheckDirectory(const std::string& path) {
  LS_ASSIGN(const auto status, StatusOf(path));
  if (!status) return Ok();
  LS_TRY(CheckOwner(path, *status));
  if ((status->st_mode & kOthersMayWrite) == 0) return Ok();
  // The sticky bit keeps others from replacing files, not from making the -wal or -journal that SQLite would find next.
  if ((status->st_mode & S_ISVTX) != 0) {
    return Distrust(Cat("other users may make files in the directory ", path, "; name a directory in it, such as ",
                        (fs::path(path) / "laneshift").string()));
  }
  return Distrust(Cat("other users may write to the directory ", path, "; chmod go-w it"));
}

Status CheckFile(const std::string& path) {
  struct stat link = {};
  if (lstat(path.c_str(), &link) != 0) return Ok();
  LS_TRY(CheckOwner(path, link));
  LS_TRY(CheckRegular(path));
  LS_ASSIGN(const auto status, StatusOf(path));
  if (!status) return Ok();
  LS_TRY(CheckOwner(path, *status));
  if ((status->st_mode & kOthersMayWrite) != 0) {
    return Distrust(Cat("other users may write to ", path, "; chmod go-w it"));
  }
  return Ok();
}

}  // namespace

Status CheckRegular(const std::string& path) {
  LS_ASSIGN(const auto status, StatusOf(path));
  if (!status || S_ISREG(status->st_mode)) return Ok();
  return Distrust(Cat(path, " is ", base::KindOfFile(status->st_mode), " and no regular file"));
}

Status CheckTrust(const std::string& database_path) {
  // SQLite follows a link and keeps its files next to what it finds.
  std::error_code failure;
  fs::path real = fs::canonical(database_path, failure);
  if (failure) real = fs::absolute(database_path, failure);
  for (const fs::path& directory : {fs::absolute(database_path, failure).parent_path(), real.parent_path()}) {
    LS_TRY(CheckDirectory(directory));
  }
  LS_TRY(CheckFile(database_path));
  for (const std::string_view companion : kCompanions) LS_TRY(CheckFile(Cat(real.string(), companion)));
  return Ok();
}

Status MakePrivateDirectory(const std::string& path) {
  const auto failed = [&](const std::string& why) {
    return MakeError(ErrorCode::kNotFound, Cat("the directory ", path, " cannot be made: ", why));
  };
  std::error_code failure;
  if (fs::is_directory(path, failure)) return Ok();
  const fs::path whole = fs::absolute(path, failure).lexically_normal();
  const fs::path own = whole.has_filename() ? whole : whole.parent_path();
  fs::create_directories(own.parent_path(), failure);
  if (failure) return failed(failure.message());
  if (mkdir(own.c_str(), 0700) == 0 || fs::is_directory(own, failure)) return Ok();
  return failed(std::strerror(errno));
}

int OpenLockFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  struct stat status = {};
  if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  close(fd);
  return -1;
}

}  // namespace laneshift::store
