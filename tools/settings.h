// Settings: the environment. Read once, here; everything else gets typed options.
//
//   LANESHIFT_CACHE_DIR  where the store lives (store/location.h)
//   LANESHIFT_SYSTEM_STORE  a sealed database that is read under it; else the installed one, if there is one
//
// CUDA_HOME and CUDNN_HOME are read by base/cuda_toolkit.h, for the library as well.
#pragma once

#include <string>
#include <vector>

namespace laneshift::tools {

struct Settings {
  std::string store_directory;                     // store::UsualDirectory()
  std::string system_store{};                      // empty: the installed one
  std::string version{};                           // of this program
  std::string program{};                           // this one's path; empty: unknown
  std::vector<std::string> program_directories{};  // of PATH
  std::string home{};                              // the user's directory; empty: unknown
  std::vector<std::string>
      library_directories;  // where to look for NVRTC, cuBLAS and cuDNN, in addition to the loader's path

  static Settings FromEnvironment();
};

}  // namespace laneshift::tools
