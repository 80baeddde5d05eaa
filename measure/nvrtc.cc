#include "measure/nvrtc.h"

#include "base/text.h"

namespace laneshift::measure {

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

  static Result<Functions> Of(const SharedLibrary& library) {
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

  Result<std::string> CompileProgram(void* program, const std::vector<const char*>& options, CodeForm form) const {
    if (const int failed = compile(program, static_cast<int>(options.size()), options.data()); failed != 0) {
      size_t bytes = 0;
      std::string text;
      if (log_size(program, &bytes) == 0 && bytes > 1) {
        text.resize(bytes);
        log(program, text.data());
      }
      return MakeError(ErrorCode::kDriver, Cat("NVRTC error ", failed, ": ", text.c_str()));
    }
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

Result<Nvrtc> Nvrtc::Open(const std::vector<std::string>& library_directories) {
  auto library = SharedLibrary::Open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, library_directories);
  if (!library) {
    return MakeError(ErrorCode::kUnsupported, Cat("no NVRTC: ", library.error().message,
                                                  "; install the CUDA toolkit's libnvrtc or set CUDA_HOME"));
  }
  Nvrtc nvrtc(std::move(*library));
  LS_ASSIGN(const Functions f, Functions::Of(nvrtc.library_));
  int major = 0, minor = 0;
  f.version(&major, &minor);
  nvrtc.name_ = Cat("NVRTC ", major, ".", minor, " (", nvrtc.library_.name(), ")");
  return nvrtc;
}

Result<std::string> Nvrtc::Compile(const std::string& source, const std::string& arch,
                                   const std::vector<std::string>& options, CodeForm form) const {
  LS_ASSIGN(const Functions f, Functions::Of(library_));
  void* program = nullptr;
  if (const int failed = f.create(&program, source.c_str(), "laneshift.cu", 0, nullptr, nullptr); failed != 0) {
    return MakeError(ErrorCode::kDriver, Cat("nvrtcCreateProgram: error ", failed));
  }
  const std::string architecture = "--gpu-architecture=" + arch;
  std::vector<const char*> texts = {architecture.c_str()};
  for (const std::string& option : options) texts.push_back(option.c_str());
  auto image = f.CompileProgram(program, texts, form);
  f.destroy(&program);
  return image;
}

}  // namespace laneshift::measure
