// Where the files of a CUDA toolkit are: CUDA_HOME, then /usr/local/cuda; for cuDNN, which is often installed
// elsewhere, CUDNN_HOME as well. The variables are read at each call.
#pragma once

#include <string>
#include <vector>

namespace laneshift::base {

// The directories of libraries, in the order in which they are searched. They need not exist.
std::vector<std::string> CudaLibraryDirectories();

// The toolkit's program `name`: that of CUDA_HOME, otherwise the first on PATH, otherwise that of /usr/local/cuda;
// empty if there is none.
std::string FindCudaProgram(const std::string& name);
std::string FindPtxas();

}  // namespace laneshift::base
