#include "tools/settings.h"

#include <cstdlib>
#include <filesystem>

#include "base/cuda_toolkit.h"
#include "base/text.h"
#include "store/location.h"

namespace laneshift::tools {
namespace {

// An empty variable counts as one that is not set.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

Settings Settings::FromEnvironment() {
  Settings settings;
  settings.store_directory = store::UsualDirectory();
  settings.system_store = Variable("LANESHIFT_SYSTEM_STORE");
  std::error_code unknown;
  settings.program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  settings.library_directories = base::CudaLibraryDirectories();
  settings.home = Variable("HOME");
  const std::string path = Variable("PATH");
  for (const std::string_view directory : base::Split(path, ':')) {
    if (!directory.empty()) settings.program_directories.emplace_back(directory);
  }
  return settings;
}

}  // namespace laneshift::tools
