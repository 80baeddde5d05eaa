#include "store/store_file.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <thread>

#include "base/text.h"
#include "store/file_trust.h"

namespace laneshift::store {
namespace {

using base::Cat;

// statfs(2) magic numbers of filesystems that are shared between hosts or served by a process.
constexpr unsigned kRemoteFilesystems[] = {
    0x6969,      // NFS
    0x517b,      // SMB
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB2
    0x01021997,  // 9P
    0x65735546,  // FUSE
    0x00c36400,  // Ceph
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x5346414f,  // AFS
    0x19830326,  // BeeGFS
    0x7461636f,  // OCFS2
    0x01161970,  // GFS2
};

bool Exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

std::string UtcTime() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

}  // namespace

OpenLock::OpenLock(const std::string& database_path, int timeout_ms) : fd_(OpenLockFile(Cat(database_path, ".lock"))) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    if (std::chrono::steady_clock::now() >= deadline) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

OpenLock::~OpenLock() {
  if (fd_ >= 0) close(fd_);
}

std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity(status.st_dev, status.st_ino);
}

Result<std::string> SetAside(const std::string& path, std::optional<FileIdentity> expected) {
  std::optional<FileIdentity> present = IdentityOf(path);
  if (!present || (expected && present != expected)) return std::string();
  std::string stem = Cat(path, ".corrupt-", UtcTime(), "-");
  int n = 1;
  while (Exists(Cat(stem, n)) || Exists(Cat(stem, n, "-wal"))) ++n;
  std::string target = Cat(stem, n);
  if (std::rename(path.c_str(), target.c_str()) != 0) {
    return MakeError(ErrorCode::kDriver, Cat("cannot rename ", path, " to ", target, ": ", std::strerror(errno)));
  }
  // After the main file: a new database must not meet the old one's log.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    std::string from = path + suffix, to = target + suffix;
    if (Exists(from) && std::rename(from.c_str(), to.c_str()) != 0) {
      return MakeError(ErrorCode::kDriver, Cat("cannot rename ", from, " to ", to, ": ", std::strerror(errno)));
    }
  }
  return target;
}

bool OnLocalFilesystem(const std::string& path) {
  struct statfs status;
  if (statfs(path.c_str(), &status) != 0) return false;
  auto type = static_cast<unsigned>(status.f_type);
  return std::find(std::begin(kRemoteFilesystems), std::end(kRemoteFilesystems), type) == std::end(kRemoteFilesystems);
}

}  // namespace laneshift::store
