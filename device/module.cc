#include "device/module.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::device {
namespace {

using base::Cat;

struct PtxRelease {
  int cuda_version;
  Version ptx;
};

// PTX ISA, "Release Notes": the version that each CUDA release introduced.
constexpr PtxRelease kPtxReleases[] = {
    {12000, {8, 0}}, {12010, {8, 1}}, {12020, {8, 2}}, {12030, {8, 3}}, {12040, {8, 4}}, {12050, {8, 5}},
    {12060, {8, 5}}, {12070, {8, 6}}, {12080, {8, 7}}, {12090, {8, 8}}, {13000, {9, 0}}, {13010, {9, 1}},
};

std::string Print(Version version) { return Cat(version.first, ".", version.second); }

// The first word after `directive` at the start of a statement. Comments before it are skipped by line.
std::string_view WordAfter(std::string_view ptx, std::string_view directive) {
  for (std::string_view line : base::Split(ptx, '\n')) {
    std::vector<std::string_view> words = base::Words(line);
    if (words.size() < 2 || words[0] != directive) continue;
    return words[1].substr(0, words[1].find_first_of(",;/"));
  }
  return {};
}

struct JitLog {
  char errors[8192] = "";

  std::string Text() const { return std::string(base::Trim({errors, strnlen(errors, sizeof errors)})); }
};

CuResult LoadImage(const DriverApi& api, const void* image, CuModule* module, JitLog* log) {
  CuJitOption options[] = {kCuJitErrorLogBuffer, kCuJitErrorLogBufferSizeBytes};
  void* values[] = {log->errors, reinterpret_cast<void*>(sizeof log->errors)};
  return api.ModuleLoadDataEx(module, image, 2, options, values);
}

Error PtxTooNew(const DriverApi& api, std::string_view ptx) {
  int driver = 0;
  api.DriverGetVersion(&driver);
  std::optional<Version> needed = PtxVersionOf(ptx);
  std::optional<Version> known = PtxVersionOfDriver(driver);
  return MakeError(
      ErrorCode::kUnsupported,
      Cat("the driver supports CUDA ", driver / 1000, ".", driver % 1000 / 10,
          known ? Cat(" (PTX ISA ", Print(*known), ")") : "", " but the kernel needs PTX ",
          needed ? Print(*needed) : "of an unknown version", ": update the driver or pass a cubin made by ptxas"));
}

Error LoadFailure(const DriverApi& api, CuResult result, std::string_view what, const JitLog& log) {
  Error error = DriverError(api, result, what);
  if (std::string text = log.Text(); !text.empty()) error.message += Cat("; the driver's log: ", text);
  return error;
}

}  // namespace

std::optional<Version> PtxVersionOf(std::string_view ptx) {
  std::vector<std::string_view> parts = base::Split(WordAfter(ptx, ".version"), '.');
  if (parts.size() != 2) return std::nullopt;
  std::optional<int64_t> major = base::ParseInt(parts[0]), minor = base::ParseInt(parts[1]);
  if (!major || !minor) return std::nullopt;
  return Version(static_cast<int>(*major), static_cast<int>(*minor));
}

std::string_view PtxTargetOf(std::string_view ptx) { return WordAfter(ptx, ".target"); }

std::optional<Version> PtxVersionOfDriver(int driver_version) {
  for (const PtxRelease& release : kPtxReleases) {
    if (release.cuda_version == driver_version) return release.ptx;
  }
  return std::nullopt;
}

Result<Module> Module::LoadPtx(Context context, const std::string& ptx) {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context));
  const DriverApi& api = *context.api;
  JitLog log;
  CuModule handle = nullptr;
  CuResult result = LoadImage(api, ptx.c_str(), &handle, &log);
  if (result == kCuSuccess) return Module(context, handle);
  if (result == kCuErrorUnsupportedPtxVersion) return PtxTooNew(api, ptx);
  if (result == kCuErrorNoBinaryForGpu) {
    return LoadFailure(api, result, Cat("this device cannot run PTX for ", PtxTargetOf(ptx)), log);
  }
  return LoadFailure(api, result, Cat("loading PTX for ", PtxTargetOf(ptx)), log);
}

Result<Module> Module::LoadCubin(Context context, std::string_view cubin) {
  // The driver reads sizes from the header and would run past the end of anything that is not an ELF file.
  if (cubin.size() < 64 || cubin.substr(0, 4) != "\177ELF") {
    return MakeError(ErrorCode::kCorrupt,
                     Cat("a cubin starts with an ELF header; these ", cubin.size(), " bytes do not"));
  }
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context));
  JitLog log;
  CuModule handle = nullptr;
  CuResult result = LoadImage(*context.api, cubin.data(), &handle, &log);
  if (result == kCuSuccess) return Module(context, handle);
  Error error = LoadFailure(*context.api, result, Cat("loading a cubin of ", cubin.size(), " bytes"), log);
  if (result == kCuErrorInvalidImage || result == kCuErrorNoBinaryForGpu) error.code = ErrorCode::kUnsupported;
  return error;
}

Module::Module(Module&& other) noexcept : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}

Module& Module::operator=(Module&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  return *this;
}

Module::~Module() {
  if (handle_ == nullptr) return;
  ReleaseIn(context_, "cuModuleUnload", [&] { return context_.api->ModuleUnload(handle_); });
}

}  // namespace laneshift::device
