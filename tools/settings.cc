#include "tools/settings.h"

#include <cstdlib>
#include <filesystem>

#include "store/location.h"

namespace laneshift::tools {
namespace {

// An empty variable counts as one that is not set.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void AddLibraries(const std::string& home, Settings& settings) {
  settings.library_directories.push_back(home + "/lib64");
  settings.library_directories.push_back(home + "/lib");
}

}  // namespace

Settings Settings::FromEnvironment() {
  Settings settings;
  settings.store_directory = store::UsualDirectory();
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
