#include "runtime/installed_files.h"

#include <unistd.h>

#include <filesystem>
#include <initializer_list>

#include "base/shared_library.h"
#include "base/subprocess.h"

namespace laneshift::runtime {
namespace {

namespace fs = std::filesystem;

// The first of the paths, relative to this code, at which `mode` is allowed.
std::string FirstAt(std::initializer_list<const char*> relative_paths, int mode) {
  const fs::path here = base::DirectoryOfCode(reinterpret_cast<const void*>(&InstalledProgram));
  if (here.empty()) return {};
  for (const char* relative : relative_paths) {
    const std::string path = (here / relative).lexically_normal().string();
    std::error_code unreadable;
    if (fs::is_regular_file(path, unreadable) && access(path.c_str(), mode) == 0) return path;
  }
  return {};
}

}  // namespace

std::string InstalledProgram() {
  const std::string installed = FirstAt({LANESHIFT_BINDIR_FROM_LIBDIR "/laneshift", "laneshift"}, X_OK);
  return installed.empty() ? base::FindProgram("laneshift") : installed;
}

std::string InstalledSystemStore() {
  return FirstAt({LANESHIFT_DATADIR_FROM_LIBDIR "/laneshift/system.db", LANESHIFT_DATADIR_FROM_BINDIR "/laneshift/system.db"},
                 R_OK);
}

}  // namespace laneshift::runtime
