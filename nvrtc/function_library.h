// FunctionLibrary: users' epilogue functions by digest: compiled by NVRTC once for each distinct source and target, and
// kept in the store, so that the next process finds the text and loads no NVRTC. NVRTC itself runs in a
// separate process (nvrtc/compile_worker.h).
//
// Thread-safety: all members may be called from any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "ir/program.h"
#include "laneshift/engine.h"
#include "laneshift/epilogue_function.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "nvrtc/nvrtc.h"
#include "store/store.h"
#include "target/target.h"

namespace laneshift::nvrtc {

struct LibraryOptions {
  std::vector<std::string> library_directories{};  // where to look for NVRTC, in addition to the loader's path
  std::vector<std::string> include_directories{};  // users'
  std::string nvrtc{};                             // the library's path; empty: looked for
  std::string program{};                           // `laneshift`, in which NVRTC runs; empty: there is none
  FunctionLimits limits{};
  bool in_process = false;  // whether NVRTC may run here, without limits, where there is no program
};

class FunctionLibrary {
 public:
  // REQUIRES: `store` outlives the library.
  FunctionLibrary(store::Store& store, const target::Target& target, LibraryOptions options);

  // kInvalidArgument: the source does not compile (NVRTC's log, with the source's own lines), has no such function, has
  // several, or its signature is not supported. kUnsupported: there is no NVRTC, or the function does what is not
  // allowed in an epilogue. kNotFound: there is no program to run NVRTC in.
  Result<FunctionCall> Find(const FunctionSource& source);

  // A problem whose epilogue may name files: "epilogue=bias_n+act.cu:Swish:1.5". Errors as Find and ParseProblem.
  Result<Problem> ReadProblem(std::string_view text);

  // The problem with the lengths of those of its functions that this process or the store has.
  Problem WithLengths(Problem problem);

  // The texts of the functions that a program calls. kNotFound: one that neither this process nor the store has.
  Result<compiler::FunctionTexts> TextsOf(const ir::Program& program);

  // Of one function. Errors as TextsOf.
  Result<std::string> TextOf(const std::string& name, const std::string& digest);

  // How often NVRTC was called.
  int compilations() const;

 private:
  struct Toolkit {
    std::string compiler;                          // the file of NVRTC, where it is known without loading it
    std::vector<std::string> include_directories;  // CUDA's
  };
  static Toolkit Look(const LibraryOptions& options);

  Result<std::string> DigestOf(const FunctionSource& source) const;
  std::optional<std::string> Stored(const std::string& digest, bool any_compiler);
  Result<std::string> CompileText(const FunctionSource& source);
  Result<NvrtcCompilation> Run(const CompileJob& job);
  Error Explain(const FunctionSource& source, const CompileJob& job, const NvrtcCompilation& failed);
  Result<std::string> Text(const std::string& name, const std::string& digest);  // REQUIRES: mutex_ is held
  void Keep(const std::string& digest, const FunctionSource& source, const std::string& text);

  store::Store& store_;
  const target::Target& target_;
  const LibraryOptions options_;
  const Toolkit toolkit_;

  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;  // guarded by mutex_; by digest
  std::optional<Result<Nvrtc>> nvrtc_;        // guarded by mutex_; opened when first needed
  int compilations_ = 0;                      // guarded by mutex_
};

}  // namespace laneshift::nvrtc
