// Nvrtc: NVIDIA's run-time compiler, where it is installed. Only the checking reference of `run` uses it.
//
// Thread-safety: immutable once opened; Compile may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "laneshift/result.h"
#include "measure/shared_library.h"

namespace laneshift::measure {

// A driver takes both; the emulator takes PTX alone. A cubin does not care whether NVRTC is newer than the driver.
enum class CodeForm { kCubin, kPtx };

class Nvrtc {
 public:
  // kUnsupported says what is missing and what to install.
  static Result<Nvrtc> Open(const std::vector<std::string>& library_directories);

  // "NVRTC 13.0 (libnvrtc.so.13)"
  const std::string& name() const { return name_; }
  // CUDA C++ to code for `arch` ("sm_90"). kDriver carries the compiler's log.
  Result<std::string> Compile(const std::string& source, const std::string& arch,
                              const std::vector<std::string>& options, CodeForm form = CodeForm::kCubin) const;

 private:
  struct Functions;
  explicit Nvrtc(SharedLibrary library) : library_(std::move(library)) {}
  SharedLibrary library_;
  std::string name_;
};

}  // namespace laneshift::measure
