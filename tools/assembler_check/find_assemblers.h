// FindAssemblers: every ptxas of this machine: of CUDA toolkits, of PATH, and of the Python packages that bring one
// (nvidia-cuda-nvcc, triton).
//
// Thread-safety: reads the file system, keeps nothing.
#pragma once

#include <string>
#include <vector>

#include "device/assembler.h"
#include "tools/settings.h"

namespace laneshift::tools {

// Whether ptxas is also looked for where it usually is.
enum class AssemblerSearch : uint8_t { kMachine, kOnlyNamed };

// `named`: each a ptxas, or a directory that has some: a toolkit, a virtual environment, or what `pip --target` made.
// Of several with one version that nobody named the first one stands for all. The Error says which of `named` is no
// ptxas and has none; kNotFound: there is none at all.
Result<std::vector<device::PtxAssembler>> FindAssemblers(const std::vector<std::string>& named, AssemblerSearch search,
                                                         const Settings& settings);

// The ptxas files under a toolkit's or a virtual environment's directory, or one of Python packages.
std::vector<std::string> AssemblersIn(const std::string& directory);

}  // namespace laneshift::tools
