#include "store/file_trust.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "base/read_file.h"
#include "base/text.h"

namespace laneshift::store {
namespace {

using base::Cat;
namespace fs = std::filesystem;

constexpr std::string_view kCompanions[] = {"-wal", "-shm", "-journal"};
constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;
constexpr int kMaxLinks = 40;  // as many as Linux follows

Error Distrust(std::string what) { return MakeError(ErrorCode::kUnsupported, std::move(what)); }

// Where root is not mapped, the user to whom everything of unmapped users seems to belong.
std::optional<uid_t> UnmappedRoot() {
  const auto map = base::ReadFile("/proc/self/uid_map");
  if (!map || MapsRoot(*map)) return std::nullopt;
  constexpr uid_t kUsual = 65534;
  const auto overflow = base::ReadFile("/proc/sys/kernel/overflowuid");
  const auto number = overflow ? base::ParseInt(overflow->substr(0, overflow->find('\n'))) : std::nullopt;
  return number ? static_cast<uid_t>(*number) : kUsual;
}

// `leads`: a directory or a link on the way to the files, which root makes.
Status CheckOwner(const std::string& path, const struct stat& status, bool leads = false) {
  const uid_t own = geteuid();
  if (status.st_uid == own || status.st_uid == 0) return Ok();
  if (leads && status.st_uid == UnmappedRoot()) return Ok();
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

// Whether a directory is the one that holds the files, or leads to it.
enum class Place { kHolds, kLeadsThere };

Status CheckDirectory(const std::string& path, const struct stat& status, Place place) {
  LS_TRY(CheckOwner(path, status, place == Place::kLeadsThere));
  if ((status.st_mode & kOthersMayWrite) == 0) return Ok();
  if ((status.st_mode & S_ISVTX) == 0) {
    return Distrust(
        Cat("other users may write to the directory ", path, ", and so replace what is in it; chmod go-w it"));
  }
  if (place == Place::kLeadsThere) return Ok();
  // The sticky bit keeps others from replacing files, not from making the -wal or -journal that SQLite would find next.
  return Distrust(Cat("other users may make files in the directory ", path, "; name a directory in it, such as ",
                      (fs::path(path) / "laneshift").string()));
}

// Takes the way to the file `path` as the system does, name by name, and checks every directory and every link that it
// meets: whoever may replace one of them chooses the file. What is missing ends the way.
Status CheckWay(const fs::path& path) {
  std::vector<fs::path> ahead;  // names still to be taken, the next one last
  const auto put_ahead = [&](const fs::path& names) {
    const std::vector<fs::path> in_order(names.begin(), names.end());
    ahead.insert(ahead.end(), in_order.rbegin(), in_order.rend());
  };
  std::error_code failure;
  put_ahead(fs::absolute(path, failure));
  fs::path here;
  int links = 0;
  while (!ahead.empty()) {
    const fs::path name = std::move(ahead.back());
    ahead.pop_back();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      here = here.parent_path();  // no link is part of `here`
      continue;
    }
    struct stat status = {};
    if (ahead.empty() && stat(here.c_str(), &status) == 0) LS_TRY(CheckDirectory(here, status, Place::kHolds));
    const fs::path next = here / name;
    if (lstat(next.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return Ok();
      return Distrust(Cat(next.string(), " cannot be looked at: ", std::strerror(errno)));
    }
    if (S_ISDIR(status.st_mode)) {
      LS_TRY(CheckDirectory(next, status, Place::kLeadsThere));
      here = next;
    } else if (S_ISLNK(status.st_mode)) {
      LS_TRY(CheckOwner(next, status, /*leads=*/true));
      if (++links > kMaxLinks) return Distrust(Cat(path.string(), " leads through more than ", kMaxLinks, " links"));
      const fs::path aim = fs::read_symlink(next, failure);
      if (failure) return Distrust(Cat(next.string(), " cannot be looked at: ", failure.message()));
      if (aim.is_absolute()) here.clear();
      put_ahead(aim);
    } else {
      return Ok();  // the file; CheckFile judges it
    }
  }
  return Ok();
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

bool MapsRoot(std::string_view uid_map) {
  for (const std::string_view line : base::Split(uid_map, '\n')) {
    if (line.substr(std::min(line.size(), line.find_first_not_of(' '))).starts_with("0 ")) return true;
  }
  return false;
}

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
  LS_TRY(CheckWay(database_path));
  LS_TRY(CheckFile(database_path));
  for (const std::string_view companion : kCompanions) LS_TRY(CheckFile(Cat(real.string(), companion)));
  return Ok();
}

Status MakePrivateDirectory(const std::string& path) {
  const auto failed = [&](const std::string& why) {
    return MakeError(ErrorCode::kNotFound, Cat("the directory ", path, " cannot be made: ", why));
  };
  std::error_code failure;
  const fs::path whole = fs::absolute(path, failure).lexically_normal();
  fs::path made;
  for (const fs::path& name : whole) {
    made /= name;
    // Another process may make it at the same time.
    if (fs::is_directory(made, failure) || mkdir(made.c_str(), 0700) == 0) continue;
    const int why = errno;
    if (!fs::is_directory(made, failure)) return failed(std::strerror(why));
  }
  return Ok();
}

int OpenLockFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  struct stat status = {};
  if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  close(fd);
  return -1;
}

}  // namespace laneshift::store
