#include "tools/settings.h"

#include <cstdlib>
#include <filesystem>

namespace laneshift::tools {
namespace {

// An empty variable counts as one that is not set.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string StoreDirectory() {
  if (const std::string own = Variable("LANESHIFT_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = Variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/laneshift";
  if (const std::string home = Variable("HOME"); !home.empty()) return home + "/.cache/laneshift";
  return {};
}

void AddLibraries(const std::string& home, Settings& settings) {
  settings.library_directories.push_back(home + "/lib64");
  settings.library_directories.push_back(home + "/lib");
}

}  // namespace

Settings Settings::FromEnvironment() {
  Settings settings;
  settings.store_directory = StoreDirectory();
  settings.system_store = Variable("LANESHIFT_SYSTEM_STORE");
  std::error_code unknown;
  settings.program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (const std::string toolkit = Variable("CUDA_HOME"); !toolkit.empty()) {
    std::error_code unreadable;
    const std::string ptxas = toolkit + "/bin/ptxas";
    if (std::filesystem::exists(ptxas, unreadable)) settings.ptxas = ptxas;
    AddLibraries(toolkit, settings);
  }
  // cuDNN comes apart from the toolkit, as often as not.
  if (const std::string cudnn = Variable("CUDNN_HOME"); !cudnn.empty()) AddLibraries(cudnn, settings);
  AddLibraries("/usr/local/cuda", settings);
  return settings;
}

}  // namespace laneshift::tools
