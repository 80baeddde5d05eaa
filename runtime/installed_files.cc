#include "runtime/installed_files.h"

#include <filesystem>

#include "base/shared_library.h"
#include "base/subprocess.h"

namespace laneshift::runtime {
namespace {

namespace fs = std::filesystem;

// The path of an installed file, given relative to this code.
std::string Installed(const char* relative) {
  const std::string here = base::DirectoryOfCode(reinterpret_cast<const void*>(&InstalledProgram));
  return here.empty() ? here : (fs::path(here) / relative).lexically_normal().string();
}

}  // namespace

std::string InstalledProgram() {
  // From the library, and from a program in the same directory.
  for (const char* relative : {LANESHIFT_BINDIR_FROM_LIBDIR "/laneshift", "laneshift"}) {
    if (std::string program = Installed(relative); base::IsProgram(program)) return program;
  }
  return base::FindProgram("laneshift");
}

std::string InstalledSystemStore() {
  for (const char* directory : {LANESHIFT_DATADIR_FROM_LIBDIR, LANESHIFT_DATADIR_FROM_BINDIR}) {
    std::error_code unreadable;
    std::string store = Installed(directory) + "/laneshift/system.db";
    if (fs::exists(store, unreadable)) return store;
  }
  return {};
}

}  // namespace laneshift::runtime
