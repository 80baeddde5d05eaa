// Nvrtc: NVIDIA's run-time compiler, if installed. Only users' epilogue functions and the reference of `run --check`
// are compiled with it.
//
// Thread-safety: immutable once opened; compilation may be asked for from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/shared_library.h"
#include "laneshift/result.h"

namespace laneshift::nvrtc {

// A driver takes both; the emulator takes only PTX. A cubin does not depend on whether NVRTC is newer than the driver.
enum class CodeForm { kCubin, kPtx };

// A header that is in no file.
struct Header {
  std::string name, text;
};

struct CompileJob {
  std::string source;
  std::string file = "laneshift.cu";  // its name in the log
  std::string arch;                   // "sm_90" for a cubin, "compute_90a" for PTX
  std::vector<std::string> options{};
  std::vector<Header> headers{};
  CodeForm form = CodeForm::kCubin;
};

// A source that does not compile is a result, and the log says why.
struct NvrtcCompilation {
  int failure = 0;  // NVRTC's number; 0: it compiled
  std::string code, log;
};

class Nvrtc {
 public:
  // The library's names, newest first.
  static const std::vector<std::string>& LibraryNames();
  // The search path: the given directories, then those of the toolkit.
  static std::vector<std::string> SearchedDirectories(const std::vector<std::string>& library_directories);
  // kUnsupported says what is missing and what to install.
  // If `path` is given, it is the library to open, and no other is searched.
  static Result<Nvrtc> Open(const std::vector<std::string>& library_directories, const std::string& path = {});

  // "NVRTC 13.0 (libnvrtc.so.13)"
  const std::string& name() const { return name_; }
  // 13000 is 13.0.
  int version() const { return version_; }

  // kDriver: NVRTC itself failed.
  Result<NvrtcCompilation> Run(const CompileJob& job) const;
  // CUDA C++ to code for `arch` ("sm_90"). kDriver carries the compiler's log.
  Result<std::string> Compile(const std::string& source, const std::string& arch,
                              const std::vector<std::string>& options, CodeForm form = CodeForm::kCubin) const;

 private:
  struct Functions;
  explicit Nvrtc(base::SharedLibrary library) : library_(std::move(library)) {}
  base::SharedLibrary library_;
  std::string name_;
  int version_ = 0;
};

}  // namespace laneshift::nvrtc
