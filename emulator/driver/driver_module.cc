// Modules and libraries of the emulated driver: images, their functions and variables.
//
// A library is a module with other handles, and a CUkernel is its CUfunction: there is one device to load them on.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/read_file.h"
#include "base/text.h"
#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"
#include "emulator/ptx/fat_binary.h"

namespace laneshift::emulator::driver::body {

using namespace device;  // NOLINT: the driver's own types and codes
namespace {

void WriteLog(const std::string& message, unsigned count, const CuJitOption* options, void** values) {
  char* buffer = nullptr;
  size_t size = 0;
  for (unsigned o = 0; o < count; ++o) {
    if (options[o] == kCuJitErrorLogBuffer) buffer = static_cast<char*>(values[o]);
    if (options[o] == kCuJitErrorLogBufferSizeBytes) size = reinterpret_cast<uintptr_t>(values[o]);
  }
  if (buffer == nullptr || size == 0) return;
  const size_t length = std::min(size - 1, message.size());
  std::memcpy(buffer, message.data(), length);
  buffer[length] = '\0';
}

// That of CUDA 13.4. What it has that the instruction table lacks is refused by name, as of any version before.
constexpr int kNewestPtx = 94;

// What the module's header asks for, against the profile.
CuResult CheckTarget(const ModuleSyntax& syntax, const DeviceProfile& profile, std::string& message) {
  const int version = syntax.version_major * 10 + syntax.version_minor;
  if (version < 10 || version > kNewestPtx || syntax.version_minor > 9) {
    message = base::Cat("PTX version ", syntax.version_major, ".", syntax.version_minor, " is not known; 1.0 to ",
                        kNewestPtx / 10, ".", kNewestPtx % 10, " are");
    return kCuErrorUnsupportedPtxVersion;
  }
  // sm_NN runs on NN and later; sm_NNa on exactly NN; sm_NNf on NN and what is later of its major version.
  std::string_view target = syntax.target;
  const char last = target.empty() ? ' ' : target.back();
  if (last == 'a' || last == 'f') target.remove_suffix(1);
  const auto number = target.starts_with("sm_") ? base::ParseInt(target.substr(3)) : std::nullopt;
  const int own = profile.major * 10 + profile.minor;
  const bool runs = number && (last == 'a'   ? *number == own
                               : last == 'f' ? *number <= own && *number / 10 == profile.major
                                             : *number <= own);
  if (!runs) {
    message = base::Cat("the module is for ", syntax.target, ", this device is ", profile.target);
    return kCuErrorNoBinaryForGpu;
  }
  return kCuSuccess;
}

// Why an image was refused: for the log that the caller gave, and for who watches the emulator.
struct Refusal {
  CuResult result = kCuSuccess;
  std::string message;
};

Refusal LoadPtx(DriverState& state, std::string_view text, CuModule* module) {
  const DeviceProfile profile = ProfileOf(state.options);
  auto syntax = ParsePtx(text);
  if (!syntax.has_value()) return {kCuErrorInvalidPtx, syntax.error().message};
  Refusal refusal;
  refusal.result = CheckTarget(*syntax, profile, refusal.message);
  if (refusal.result != kCuSuccess) return refusal;
  auto loaded = LoadedModule::Load(std::move(*syntax), *state.memory, profile.chip);
  if (!loaded.has_value()) {
    const bool memory = loaded.error().code == ErrorCode::kResourceExhausted;
    return {memory ? kCuErrorOutOfMemory : kCuErrorInvalidPtx, loaded.error().message};
  }
  *module = Keep<CuModule>(state.modules, std::move(*loaded));
  return {};
}

// The PTX of the newest target that the device can run.
Refusal LoadFatBinary(DriverState& state, const void* image, CuModule* module) {
  const DeviceProfile profile = ProfileOf(state.options);
  auto entries = ReadFatBinary(image);
  if (!entries.has_value()) return {kCuErrorInvalidImage, entries.error().message};
  std::erase_if(*entries, [](const FatEntry& entry) { return entry.kind != FatEntry::Kind::kPtx; });
  std::stable_sort(entries->begin(), entries->end(),
                   [](const FatEntry& a, const FatEntry& b) { return a.compute_capability > b.compute_capability; });
  Refusal refusal{kCuErrorNoBinaryForGpu,
                  base::Cat("the fat binary holds no PTX, which is all that the emulator runs; compile with -gencode "
                            "arch=compute_",
                            profile.target + 3, ",code=compute_", profile.target + 3)};
  for (const FatEntry& entry : *entries) {
    if (entry.compute_capability > static_cast<uint32_t>(profile.major * 10 + profile.minor)) {
      refusal.message =
          base::Cat("the fat binary's PTX is for sm_", entry.compute_capability, ", this device is ", profile.target);
      continue;
    }
    auto text = PtxOf(entry);
    if (!text.has_value()) return {kCuErrorInvalidImage, text.error().message};
    refusal = LoadPtx(state, *text, module);
    // Another entry may be for another variant of the architecture.
    if (refusal.result != kCuErrorNoBinaryForGpu) return refusal;
  }
  return refusal;
}

Refusal LoadImage(DriverState& state, const void* image, CuModule* module) {
  const auto* bytes = static_cast<const uint8_t*>(image);
  if (bytes[0] == 0x7f && bytes[1] == 'E') {
    return {kCuErrorInvalidImage, "the emulator runs PTX; a cubin is machine code"};
  }
  if (bytes[0] != 0 && bytes[1] != 0 && IsFatBinary(image)) return LoadFatBinary(state, image, module);
  return LoadPtx(state, static_cast<const char*>(image), module);
}

CuResult Load(CuModule* module, const void* image, unsigned option_count, const CuJitOption* options, void** values) {
  LS_READY();
  if (image == nullptr || module == nullptr) return kCuErrorInvalidValue;
  const Refusal refusal = LoadImage(state, image, module);
  if (refusal.result != kCuSuccess) {
    WriteLog(refusal.message, option_count, options, values);
    state.Notice("module refused: " + refusal.message);
  }
  return refusal.result;
}

// The whole file followed by a zero; nothing if it is not a regular file.
std::optional<std::string> ReadImage(const char* path) {
  constexpr uint64_t kMaxImageFile = uint64_t{4} << 30;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return std::nullopt;
  auto image = base::ReadFile(path, kMaxImageFile);
  if (!image) return std::nullopt;
  return std::move(*image);
}

// The one handle of a kernel.
CuFunction FunctionOf(DriverState& state, LoadedModule* module, const DecodedKernel* kernel) {
  for (const auto& [handle, known] : state.functions) {
    if (known->kernel == kernel) return reinterpret_cast<CuFunction>(handle);
  }
  auto loaded = std::make_unique<LoadedFunction>();
  loaded->kernel = kernel;
  loaded->module = module;
  return Keep<CuFunction>(state.functions, std::move(loaded));
}

}  // namespace

CuResult ModuleLoadDataEx(CuModule* module, const void* image, unsigned option_count, CuJitOption* options,
                          void** values) {
  return Load(module, image, option_count, options, values);
}
CuResult ModuleLoadData(CuModule* module, const void* image) { return Load(module, image, 0, nullptr, nullptr); }
CuResult ModuleLoadFatBinary(CuModule* module, const void* image) { return Load(module, image, 0, nullptr, nullptr); }
CuResult ModuleLoad(CuModule* module, const char* path) {
  const auto image = path == nullptr ? std::nullopt : ReadImage(path);
  return image ? ModuleLoadData(module, image->c_str()) : kCuErrorFileNotFound;
}
CuResult ModuleUnload(CuModule module) {
  DriverCall call;
  const LoadedModule* known = Known(call.state.modules, module);
  if (known == nullptr) return kCuErrorInvalidHandle;
  (void)call.state.RunHeld();
  std::erase_if(call.state.functions, [&](const auto& entry) { return entry.second->module == known; });
  call.state.modules.erase(module);
  return kCuSuccess;
}

CuResult ModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  LS_READY();
  LoadedModule* known = Known(state.modules, module);
  if (known == nullptr) return kCuErrorInvalidHandle;
  const DecodedKernel* kernel = name == nullptr ? nullptr : known->Find(name);
  if (kernel == nullptr) return kCuErrorNotFound;
  return *function = FunctionOf(state, known, kernel), kCuSuccess;
}
CuResult ModuleGetFunctionCount(unsigned* count, CuModule module) {
  LS_READY();
  const LoadedModule* known = Known(state.modules, module);
  if (known == nullptr) return kCuErrorInvalidHandle;
  return *count = static_cast<unsigned>(known->kernels().size()), kCuSuccess;
}
CuResult ModuleEnumerateFunctions(CuFunction* functions, unsigned count, CuModule module) {
  LS_READY();
  LoadedModule* known = Known(state.modules, module);
  if (known == nullptr) return kCuErrorInvalidHandle;
  for (auto kernel = known->kernels().begin(); count > 0 && kernel != known->kernels().end(); ++kernel, --count)
    *functions++ = FunctionOf(state, known, &kernel->second);
  return kCuSuccess;
}
CuResult ModuleGetGlobal(CuDevicePtr* pointer, size_t* bytes, CuModule module, const char* name) {
  LS_READY();
  const LoadedModule* known = Known(state.modules, module);
  if (known == nullptr) return kCuErrorInvalidHandle;
  if (name == nullptr) return kCuErrorInvalidValue;
  const auto variable = known->FindVariable(name);
  if (!variable) return kCuErrorNotFound;
  if (pointer != nullptr) *pointer = variable->address;
  if (bytes != nullptr) *bytes = variable->bytes;
  return kCuSuccess;
}
CuResult ModuleGetLoadingMode(int* mode) { return *mode = 1, kCuSuccess; }  // eager

// ---- libraries ----

CuResult LibraryLoadData(CuLibrary* library, const void* image, CuJitOption* options, void** values,
                         unsigned option_count, void*, void**, unsigned) {
  LS_READY();
  auto owned = std::make_unique<DriverLibrary>();
  if (const CuResult bad = Load(&owned->module, image, option_count, options, values); bad != kCuSuccess) return bad;
  return *library = Keep<CuLibrary>(state.libraries, std::move(owned)), kCuSuccess;
}
CuResult LibraryLoadFromFile(CuLibrary* library, const char* path, CuJitOption* options, void** values,
                             unsigned option_count, void*, void**, unsigned) {
  const auto image = path == nullptr ? std::nullopt : ReadImage(path);
  if (!image) return kCuErrorFileNotFound;
  return LibraryLoadData(library, image->c_str(), options, values, option_count, nullptr, nullptr, 0);
}
CuResult LibraryUnload(CuLibrary library) {
  DriverCall call;
  const DriverLibrary* known = Known(call.state.libraries, library);
  if (known == nullptr) return kCuErrorInvalidHandle;
  ModuleUnload(known->module);
  return call.state.libraries.erase(library), kCuSuccess;
}
CuResult LibraryGetModule(CuModule* module, CuLibrary library) {
  LS_READY();
  const DriverLibrary* known = Known(state.libraries, library);
  if (known == nullptr) return kCuErrorInvalidHandle;
  return *module = known->module, kCuSuccess;
}
CuResult LibraryGetKernel(CuFunction* kernel, CuLibrary library, const char* name) {
  LS_READY();
  DriverLibrary* known = Known(state.libraries, library);
  if (known == nullptr) return kCuErrorInvalidHandle;
  const CuResult result = ModuleGetFunction(kernel, known->module, name);
  if (result == kCuSuccess) state.functions[*kernel]->library = known;
  return result;
}
CuResult LibraryGetGlobal(CuDevicePtr* pointer, size_t* bytes, CuLibrary library, const char* name) {
  LS_READY();
  const DriverLibrary* known = Known(state.libraries, library);
  return known == nullptr ? kCuErrorInvalidHandle : ModuleGetGlobal(pointer, bytes, known->module, name);
}
CuResult LibraryGetManaged(CuDevicePtr*, size_t*, CuLibrary library, const char*) {
  LS_READY();
  // PTX does not say which variables are managed; they are found as global ones.
  return state.libraries.contains(library) ? kCuErrorNotFound : kCuErrorInvalidHandle;
}
CuResult LibraryGetKernelCount(unsigned* count, CuLibrary library) {
  LS_READY();
  const DriverLibrary* known = Known(state.libraries, library);
  return known == nullptr ? kCuErrorInvalidHandle : ModuleGetFunctionCount(count, known->module);
}
CuResult LibraryEnumerateKernels(CuFunction* kernels, unsigned count, CuLibrary library) {
  LS_READY();
  const DriverLibrary* known = Known(state.libraries, library);
  return known == nullptr ? kCuErrorInvalidHandle : ModuleEnumerateFunctions(kernels, count, known->module);
}

// ---- functions ----

CuResult FuncGetAttribute(int* value, CuFunctionAttribute attribute, CuFunction function) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  const LoadedFunction& loaded = *known;
  const FunctionSyntax& syntax = *loaded.kernel->syntax;
  const auto& dims = syntax.reqntid[0] != 0 ? syntax.reqntid : syntax.maxntid;
  const ModuleSyntax& module = loaded.module->syntax();
  switch (attribute) {
    case kCuFuncMaxThreadsPerBlock:
      *value = dims[0] != 0 ? static_cast<int>(dims[0] * dims[1] * dims[2]) : 1024;
      break;
    case kCuFuncSharedSizeBytes:
      *value = static_cast<int>(loaded.kernel->static_shared_bytes);
      break;
    case kCuFuncConstSizeBytes:
      *value = 0;
      break;
    case kCuFuncLocalSizeBytes:
      *value = static_cast<int>(loaded.kernel->local_bytes);
      break;
    // PTX has no register allocation; the declared limit is all that is known.
    case kCuFuncNumRegs:
      *value = static_cast<int>(syntax.maxnreg);
      break;
    case kCuFuncPtxVersion:
    case kCuFuncBinaryVersion: {
      const DeviceProfile profile = ProfileOf(state.options);
      *value = profile.major * 10 + profile.minor;
      break;
    }
    case kCuFuncMaxDynamicSharedSizeBytes:
      *value = loaded.max_dynamic_shared;
      break;
    case kCuFuncPreferredSharedMemoryCarveout:
      *value = -1;
      break;
    case kCuFuncNonPortableClusterSizeAllowed:
      *value = loaded.large_clusters ? 1 : 0;
      break;
    default:
      return kCuErrorInvalidValue;  // the argument may be any number
  }
  return module.version_major > 0 ? kCuSuccess : kCuErrorUnknown;
}

CuResult FuncSetAttribute(CuFunction function, CuFunctionAttribute attribute, int value) {
  LS_READY();
  LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  LoadedFunction& loaded = *known;
  if (attribute == kCuFuncMaxDynamicSharedSizeBytes) {
    if (value < 0 || static_cast<uint32_t>(value) + loaded.kernel->static_shared_bytes > kMaxSharedBytes)
      return kCuErrorInvalidValue;
    loaded.max_dynamic_shared = value;
    return kCuSuccess;
  }
  if (attribute == kCuFuncNonPortableClusterSizeAllowed) return loaded.large_clusters = value != 0, kCuSuccess;
  return attribute == kCuFuncPreferredSharedMemoryCarveout ? kCuSuccess : kCuErrorInvalidValue;
}

CuResult FuncGetParamInfo(CuFunction function, size_t index, size_t* offset, size_t* bytes) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  const auto& parameters = known->kernel->syntax->parameters;
  if (index >= parameters.size()) return kCuErrorInvalidValue;
  if (offset != nullptr) *offset = parameters[index].offset;
  if (bytes != nullptr) *bytes = parameters[index].bytes;
  return kCuSuccess;
}
CuResult FuncGetName(const char** name, CuFunction function) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  return *name = known->kernel->name.c_str(), kCuSuccess;
}
CuResult FuncGetModule(CuModule* module, CuFunction function) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, function);
  if (known == nullptr) return kCuErrorInvalidHandle;
  return *module = reinterpret_cast<CuModule>(known->module), kCuSuccess;
}
CuResult FuncLoad(CuFunction function) {
  LS_READY();
  return state.functions.contains(function) ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult FuncIsLoaded(int* loading_state, CuFunction function) {
  const CuResult known = FuncLoad(function);
  if (known == kCuSuccess) *loading_state = 1;
  return known;
}
// What caches and banks are preferred changes speed only.
CuResult FuncSetCacheConfig(CuFunction function, int) { return FuncLoad(function); }
CuResult FuncSetSharedMemConfig(CuFunction function, int) { return FuncLoad(function); }

CuResult KernelGetFunction(CuFunction* function, CuFunction kernel) {
  const CuResult known = FuncLoad(kernel);
  if (known == kCuSuccess) *function = kernel;
  return known;
}
CuResult KernelGetLibrary(CuLibrary* library, CuFunction kernel) {
  LS_READY();
  const LoadedFunction* known = Known(state.functions, kernel);
  if (known == nullptr || known->library == nullptr) return kCuErrorInvalidHandle;
  return *library = reinterpret_cast<CuLibrary>(known->library), kCuSuccess;
}
CuResult KernelGetName(const char** name, CuFunction kernel) { return FuncGetName(name, kernel); }
CuResult KernelGetAttribute(int* value, CuFunctionAttribute attribute, CuFunction kernel, CuDevice) {
  return FuncGetAttribute(value, attribute, kernel);
}
CuResult KernelSetAttribute(CuFunctionAttribute attribute, int value, CuFunction kernel, CuDevice) {
  return FuncSetAttribute(kernel, attribute, value);
}
CuResult KernelSetCacheConfig(CuFunction kernel, int, CuDevice) { return FuncLoad(kernel); }
CuResult KernelGetParamInfo(CuFunction kernel, size_t index, size_t* offset, size_t* bytes) {
  return FuncGetParamInfo(kernel, index, offset, bytes);
}

}  // namespace laneshift::emulator::driver::body
