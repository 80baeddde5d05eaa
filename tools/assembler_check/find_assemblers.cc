#include "tools/assembler_check/find_assemblers.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/cuda_toolkit.h"
#include "base/subprocess.h"
#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;
namespace fs = std::filesystem;

// The directories in `parent` whose names begin with the prefix.
std::vector<std::string> DirectoriesNamed(const fs::path& parent, std::string_view beginning) {
  std::vector<std::string> found;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(parent, unreadable)) {
    if (entry.path().filename().string().starts_with(beginning) && entry.is_directory(unreadable))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void AddProgramsNamed(const fs::path& directory, std::string_view beginning, std::vector<std::string>& to) {
  std::vector<std::string> found;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(directory, unreadable)) {
    if (entry.path().filename().string().starts_with(beginning) && base::IsProgram(entry.path()))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  to.insert(to.end(), found.begin(), found.end());
}

// Where the wheels of nvidia-cuda-nvcc (12 and 13) and of triton install it.
void AddOfPackages(const fs::path& packages, std::vector<std::string>& to) {
  for (const char* beginning : {"cuda_nvcc", "cu1"}) {
    for (const std::string& toolkit : DirectoriesNamed(packages / "nvidia", beginning))
      AddProgramsNamed(fs::path(toolkit) / "bin", "ptxas", to);
  }
  AddProgramsNamed(packages / "triton/backends/nvidia/bin", "ptxas", to);
}

void AddOfPython(const fs::path& prefix, std::vector<std::string>& to) {
  for (const std::string& python : DirectoriesNamed(prefix / "lib", "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) AddOfPackages(fs::path(python) / packages, to);
  }
}

std::vector<std::string> AssemblersOfMachine(const Settings& settings) {
  std::vector<std::string> paths;
  if (std::string usual = base::FindPtxas(); !usual.empty()) paths.push_back(std::move(usual));
  for (const std::string& directory : settings.program_directories) {
    if (std::string own = directory + "/ptxas"; base::IsProgram(own)) paths.push_back(std::move(own));
  }
  for (const std::string& toolkit : DirectoriesNamed("/usr/local", "cuda"))
    AddProgramsNamed(fs::path(toolkit) / "bin", "ptxas", paths);
  for (const std::string& directory : settings.program_directories)
    AddOfPython(fs::path(directory).parent_path(), paths);
  if (!settings.home.empty()) AddOfPython(fs::path(settings.home) / ".local", paths);
  return paths;
}

}  // namespace

std::vector<std::string> AssemblersIn(const std::string& directory) {
  std::vector<std::string> paths;
  AddProgramsNamed(fs::path(directory) / "bin", "ptxas", paths);
  AddOfPackages(directory, paths);
  AddOfPython(directory, paths);
  return paths;
}

Result<std::vector<device::PtxAssembler>> FindAssemblers(const std::vector<std::string>& named, AssemblerSearch search,
                                                         const Settings& settings) {
  std::vector<device::PtxAssembler> assemblers;
  std::set<std::string> files, versions;
  const auto add = [&](device::PtxAssembler assembler) {
    if (files.insert(assembler.file()).second) {
      versions.insert(assembler.id());
      assemblers.push_back(std::move(assembler));
    }
  };
  for (const std::string& path : named) {
    std::error_code unknown;
    const bool directory = fs::is_directory(path, unknown);
    const std::vector<std::string> paths = directory ? AssemblersIn(path) : std::vector<std::string>{path};
    if (paths.empty())
      return MakeError(
          ErrorCode::kInvalidArgument,
          Cat("--assembler ", path, ": the directory has no ptxas, neither in bin nor in Python packages"));
    for (const std::string& one : paths) {
      auto found = device::PtxAssembler::Find({.path = one});
      if (!found) return MakeError(ErrorCode::kInvalidArgument, Cat("--assembler ", path, ": ", found.error().message));
      add(std::move(*found));
    }
  }
  if (search == AssemblerSearch::kMachine) {
    for (const std::string& path : AssemblersOfMachine(settings)) {
      // A file that only looks like a ptxas is skipped, because nobody has named it.
      auto found = device::PtxAssembler::Find({.path = path});
      if (found && !versions.contains(found->id())) add(std::move(*found));
    }
  }
  if (assemblers.empty())
    return MakeError(ErrorCode::kNotFound,
                     "no ptxas in CUDA_HOME/bin, PATH, /usr/local/cuda or Python packages (nvidia-cuda-nvcc, triton); "
                     "name one with --assembler");
  return assemblers;
}

}  // namespace laneshift::tools
