// FindAssemblers: every ptxas of this machine: of CUDA toolkits, of PATH, and of Python packages (nvidia-cuda-nvcc,
// triton).
//
// Thread-safety: reads the file system, keeps nothing.
#pragma once

#include <string>
#include <vector>

#include "device/assembler.h"
#include "tools/settings.h"

namespace laneshift::tools {

// Whether ptxas is also searched in the usual places.
enum class AssemblerSearch : uint8_t { kMachine, kOnlyNamed };

// `named`: each a ptxas, or a directory that contains some: a toolkit, a virtual environment, or a `pip --target`
// directory. Of several unnamed ones with one version the first is used. The Error says which of `named` is not a ptxas
// and contains none; kNotFound: there is none at all.
Result<std::vector<device::PtxAssembler>> FindAssemblers(const std::vector<std::string>& named, AssemblerSearch search,
                                                         const Settings& settings);

// The ptxas files under a toolkit's or a virtual environment's directory, or one of Python packages.
std::vector<std::string> AssemblersIn(const std::string& directory);

}  // namespace laneshift::tools
