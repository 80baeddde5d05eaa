#include "nvrtc/nvrtc.h"

#include <utility>

#include "base/cuda_toolkit.h"
#include "base/text.h"

namespace laneshift::nvrtc {

using base::Cat;

// The few functions that are used, by their prototypes in nvrtc.h. A program is an opaque pointer, 0 is success.
struct Nvrtc::Functions {
  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(void** program, const char* source, const char* name, int headers, const char* const* header_sources,
                const char* const* header_names) = nullptr;
  int (*destroy)(void** program) = nullptr;
  int (*compile)(void* program, int options, const char* const* option_texts) = nullptr;
  int (*cubin_size)(void* program, size_t* bytes) = nullptr;
  int (*cubin)(void* program, char* bytes) = nullptr;
  int (*ptx_size)(void* program, size_t* bytes) = nullptr;
  int (*ptx)(void* program, char* bytes) = nullptr;
  int (*log_size)(void* program, size_t* bytes) = nullptr;
  int (*log)(void* program, char* text) = nullptr;

  static Result<Functions> Of(const base::SharedLibrary& library) {
    Functions f;
    LS_TRY(library.Bind("nvrtcVersion", &f.version));
    LS_TRY(library.Bind("nvrtcCreateProgram", &f.create));
    LS_TRY(library.Bind("nvrtcDestroyProgram", &f.destroy));
    LS_TRY(library.Bind("nvrtcCompileProgram", &f.compile));
    LS_TRY(library.Bind("nvrtcGetCUBINSize", &f.cubin_size));
    LS_TRY(library.Bind("nvrtcGetCUBIN", &f.cubin));
    LS_TRY(library.Bind("nvrtcGetPTXSize", &f.ptx_size));
    LS_TRY(library.Bind("nvrtcGetPTX", &f.ptx));
    LS_TRY(library.Bind("nvrtcGetProgramLogSize", &f.log_size));
    LS_TRY(library.Bind("nvrtcGetProgramLog", &f.log));
    return f;
  }

  std::string LogOf(void* program) const {
    size_t bytes = 0;
    if (log_size(program, &bytes) != 0 || bytes <= 1) return {};
    std::string text(bytes, '\0');
    log(program, text.data());
    return std::string(base::Trim(text.c_str()));
  }

  Result<std::string> CodeOf(void* program, CodeForm form) const {
    const auto size_of = form == CodeForm::kCubin ? cubin_size : ptx_size;
    const auto code_of = form == CodeForm::kCubin ? cubin : ptx;
    size_t bytes = 0;
    if (size_of(program, &bytes) != 0 || bytes == 0) return MakeError(ErrorCode::kDriver, "NVRTC made no code");
    std::string code(bytes, '\0');
    if (code_of(program, code.data()) != 0) return MakeError(ErrorCode::kDriver, "NVRTC made no code");
    // NVRTC counts the zero that ends the text.
    if (form == CodeForm::kPtx) code.pop_back();
    return code;
  }
};

const std::vector<std::string>& Nvrtc::LibraryNames() {
  static const std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  return names;
}

std::vector<std::string> Nvrtc::SearchedDirectories(const std::vector<std::string>& library_directories) {
  std::vector<std::string> directories = library_directories;
  for (std::string& directory : base::CudaLibraryDirectories()) directories.push_back(std::move(directory));
  return directories;
}

Result<Nvrtc> Nvrtc::Open(const std::vector<std::string>& library_directories, const std::string& path) {
  auto library = path.empty() ? base::SharedLibrary::Open(LibraryNames(), SearchedDirectories(library_directories))
                              : base::SharedLibrary::Open({path}, {});
  if (!library) {
    return MakeError(ErrorCode::kUnsupported, Cat("no NVRTC: ", library.error().message,
                                                  "; install the CUDA toolkit's libnvrtc or set CUDA_HOME"));
  }
  // NVRTC finds its built-in functions only through the loader, which need not know the directory that NVRTC is in.
  library->OpenNeighbours("libnvrtc-builtins.so");
  Nvrtc nvrtc(std::move(*library));
  LS_ASSIGN(const Functions f, Functions::Of(nvrtc.library_));
  int major = 0, minor = 0;
  f.version(&major, &minor);
  nvrtc.version_ = 1000 * major + 10 * minor;
  nvrtc.name_ = Cat("NVRTC ", major, ".", minor, " (", nvrtc.library_.name(), ")");
  return nvrtc;
}

Result<NvrtcCompilation> Nvrtc::Run(const CompileJob& job) const {
  LS_ASSIGN(const Functions f, Functions::Of(library_));
  std::vector<const char*> texts, names;
  for (const Header& header : job.headers) {
    texts.push_back(header.text.c_str());
    names.push_back(header.name.c_str());
  }
  void* program = nullptr;
  if (const int failed = f.create(&program, job.source.c_str(), job.file.c_str(), static_cast<int>(names.size()),
                                  texts.data(), names.data());
      failed != 0) {
    return MakeError(ErrorCode::kDriver, Cat("nvrtcCreateProgram: error ", failed));
  }
  const std::string architecture = "--gpu-architecture=" + job.arch;
  std::vector<const char*> options = {architecture.c_str()};
  for (const std::string& option : job.options) options.push_back(option.c_str());
  NvrtcCompilation outcome;
  outcome.failure = f.compile(program, static_cast<int>(options.size()), options.data());
  outcome.log = f.LogOf(program);
  Result<std::string> code = std::string();
  if (outcome.failure == 0) code = f.CodeOf(program, job.form);
  f.destroy(&program);
  LS_ASSIGN(outcome.code, std::move(code));
  return outcome;
}

Result<std::string> Nvrtc::Compile(const std::string& source, const std::string& arch,
                                   const std::vector<std::string>& options, CodeForm form) const {
  LS_ASSIGN(NvrtcCompilation outcome, Run({.source = source, .arch = arch, .options = options, .form = form}));
  if (outcome.failure != 0) {
    return MakeError(ErrorCode::kDriver, Cat("NVRTC error ", outcome.failure, ": ", outcome.log));
  }
  return std::move(outcome.code);
}

}  // namespace laneshift::nvrtc
