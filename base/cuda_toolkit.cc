#include "base/cuda_toolkit.h"

#include <cstdlib>

#include "base/subprocess.h"

namespace laneshift::base {
namespace {

constexpr const char* kUsualPlace = "/usr/local/cuda";

void AddLibraries(const std::string& home, std::vector<std::string>& directories) {
  for (const char* name : {"/lib64", "/lib"}) directories.push_back(home + name);
}

// An empty variable counts as one that is not set.
const char* Home(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

}  // namespace

std::vector<std::string> CudaLibraryDirectories() {
  std::vector<std::string> directories;
  for (const char* variable : {"CUDA_HOME", "CUDNN_HOME"}) {
    if (const char* home = Home(variable)) AddLibraries(home, directories);
  }
  AddLibraries(kUsualPlace, directories);
  return directories;
}

std::string FindCudaProgram(const std::string& name) {
  if (const char* home = Home("CUDA_HOME")) {
    if (std::string own = std::string(home) + "/bin/" + name; IsProgram(own)) return own;
  }
  return FindProgram(name, {std::string(kUsualPlace) + "/bin"});
}

std::string FindPtxas() { return FindCudaProgram("ptxas"); }

}  // namespace laneshift::base
