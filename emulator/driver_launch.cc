// Modules, functions, launches and graphs of the emulated driver.

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "emulator/driver_functions.h"
#include "emulator/driver_state.h"

namespace laneshift::emulator::driver {

using namespace device;  // the driver's own types and codes
namespace {

constexpr uint32_t kMaxSharedBytes = 227 << 10;

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

// What the module's header asks for, against the profile.
CuResult CheckTarget(const ModuleSyntax& syntax, const DeviceProfile& profile, std::string& message) {
  const int version = syntax.version_major * 10 + syntax.version_minor;
  if (version < 10 || version > 93) {
    message =
        base::Cat("PTX version ", syntax.version_major, ".", syntax.version_minor, " is not known; 1.0 to 9.3 are");
    return kCuErrorUnsupportedPtxVersion;
  }
  // sm_NN runs on NN and later; sm_NNa on exactly NN; sm_NNf on NN's family.
  std::string_view target = syntax.target;
  const char last = target.empty() ? ' ' : target.back();
  const bool exact = last == 'a' || last == 'f';
  if (exact) target.remove_suffix(1);
  const auto number = target.starts_with("sm_") ? base::ParseInt(target.substr(3)) : std::nullopt;
  const int own = profile.major * 10 + profile.minor;
  if (!number || (exact ? *number != own : *number > own)) {
    message = base::Cat("the module is for ", syntax.target, ", this device is ", profile.target);
    return kCuErrorNoBinaryForGpu;
  }
  return kCuSuccess;
}

}  // namespace

CuResult ModuleLoadDataEx(CuModule* module, const void* image, unsigned option_count, CuJitOption* options,
                          void** values) {
  LS_READY();
  const auto* text = static_cast<const char*>(image);
  if (text == nullptr || module == nullptr) return kCuErrorInvalidValue;
  const auto* bytes = static_cast<const uint8_t*>(image);
  if ((bytes[0] == 0x7f && bytes[1] == 'E') || (bytes[0] == 0x50 && bytes[1] == 0xed)) {
    WriteLog("the emulator runs PTX text; a cubin or fat binary is machine code", option_count, options, values);
    return kCuErrorInvalidImage;
  }
  const DeviceProfile& profile = ProfileOf(state.options.profile);
  auto syntax = ParsePtx(text);
  if (!syntax.has_value()) {
    WriteLog(syntax.error().message, option_count, options, values);
    return kCuErrorInvalidPtx;
  }
  std::string message;
  if (const CuResult bad = CheckTarget(*syntax, profile, message); bad != kCuSuccess) {
    WriteLog(message, option_count, options, values);
    return bad;
  }
  auto loaded = Module::Load(std::move(*syntax), *state.memory, profile.chip);
  if (!loaded.has_value()) {
    WriteLog(loaded.error().message, option_count, options, values);
    return loaded.error().code == ErrorCode::kResourceExhausted ? kCuErrorOutOfMemory : kCuErrorInvalidPtx;
  }
  *module = reinterpret_cast<CuModule>(loaded->get());
  state.modules[*module] = std::move(*loaded);
  return kCuSuccess;
}

CuResult ModuleUnload(CuModule module) {
  DriverCall call;
  const auto known = call.state.modules.find(module);
  if (known == call.state.modules.end()) return kCuErrorInvalidHandle;
  std::erase_if(call.state.functions, [&](const auto& entry) { return entry.second->module == known->second.get(); });
  call.state.modules.erase(known);
  return kCuSuccess;
}

CuResult ModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  LS_READY();
  const auto known = state.modules.find(module);
  if (known == state.modules.end()) return kCuErrorInvalidHandle;
  const Kernel* kernel = known->second->Find(name);
  if (kernel == nullptr) return kCuErrorNotFound;
  auto loaded = std::make_unique<LoadedFunction>();
  loaded->kernel = kernel;
  loaded->module = known->second.get();
  *function = reinterpret_cast<CuFunction>(loaded.get());
  state.functions[*function] = std::move(loaded);
  return kCuSuccess;
}

CuResult FuncGetAttribute(int* value, CuFunctionAttribute attribute, CuFunction function) {
  LS_READY();
  const auto known = state.functions.find(function);
  if (known == state.functions.end()) return kCuErrorInvalidHandle;
  const LoadedFunction& loaded = *known->second;
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
      const DeviceProfile& profile = ProfileOf(state.options.profile);
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
  const auto known = state.functions.find(function);
  if (known == state.functions.end()) return kCuErrorInvalidHandle;
  LoadedFunction& loaded = *known->second;
  if (attribute == kCuFuncMaxDynamicSharedSizeBytes) {
    if (value < 0 || static_cast<uint32_t>(value) + loaded.kernel->static_shared_bytes > kMaxSharedBytes)
      return kCuErrorInvalidValue;
    loaded.max_dynamic_shared = value;
    return kCuSuccess;
  }
  if (attribute == kCuFuncNonPortableClusterSizeAllowed) return loaded.large_clusters = value != 0, kCuSuccess;
  return attribute == kCuFuncPreferredSharedMemoryCarveout ? kCuSuccess : kCuErrorInvalidValue;
}

namespace {

CuResult ShapeOf(const CuLaunchConfig& config, const LoadedFunction& function, LaunchShape& shape) {
  const FunctionSyntax& syntax = *function.kernel->syntax;
  shape.grid = {config.grid_x, config.grid_y, config.grid_z};
  shape.block = {config.block_x, config.block_y, config.block_z};
  shape.dynamic_shared = config.shared_mem_bytes;
  if (syntax.reqnctapercluster[0] != 0) shape.cluster = syntax.reqnctapercluster;
  shape.explicit_cluster = syntax.explicit_cluster;
  for (unsigned a = 0; a < config.attribute_count; ++a) {
    const CuLaunchAttribute& attribute = config.attributes[a];
    if (attribute.id != kCuLaunchClusterDimension) continue;
    const auto& dim = attribute.value.cluster_dim;
    const std::array<uint32_t, 3> wanted = {dim.x, dim.y, dim.z};
    if (syntax.reqnctapercluster[0] != 0 && wanted != syntax.reqnctapercluster) return kCuErrorInvalidValue;
    shape.cluster = wanted;
    shape.explicit_cluster = true;
  }
  uint64_t threads = 1, ctas = 1, clusters = 1;
  for (size_t d = 0; d < 3; ++d) {
    if (shape.grid[d] == 0 || shape.block[d] == 0 || shape.block[d] > 1024 || shape.cluster[d] == 0)
      return kCuErrorInvalidValue;
    if (shape.grid[d] > (d == 0 ? 0x7fffffffu : 65535u)) return kCuErrorInvalidValue;
    if (shape.grid[d] % shape.cluster[d] != 0) return kCuErrorInvalidClusterSize;
    threads *= shape.block[d];
    ctas *= shape.cluster[d];
    clusters *= shape.grid[d] / shape.cluster[d];
  }
  if (threads > 1024 || clusters > 0xffffffffu) return kCuErrorInvalidValue;
  if (ctas > (function.large_clusters ? 16 : 8)) return kCuErrorInvalidClusterSize;
  if (syntax.reqntid[0] != 0 && shape.block != syntax.reqntid) return kCuErrorInvalidValue;
  if (syntax.maxntid[0] != 0 && threads > uint64_t{syntax.maxntid[0]} * syntax.maxntid[1] * syntax.maxntid[2])
    return kCuErrorInvalidValue;
  if (shape.dynamic_shared > static_cast<uint32_t>(function.max_dynamic_shared)) return kCuErrorInvalidValue;
  if (shape.dynamic_shared + function.kernel->static_shared_bytes > kMaxSharedBytes) return kCuErrorInvalidValue;
  return kCuSuccess;
}

std::vector<uint8_t> PackParameters(const FunctionSyntax& syntax, void** parameters) {
  std::vector<uint8_t> block(syntax.parameter_bytes);
  for (size_t p = 0; p < syntax.parameters.size(); ++p) {
    std::memcpy(block.data() + syntax.parameters[p].offset, parameters[p], syntax.parameters[p].bytes);
  }
  return block;
}

}  // namespace

CuResult LaunchKernelEx(const CuLaunchConfig* config, CuFunction function, void** parameters, void** extra) {
  LS_READY();
  const auto known = state.functions.find(function);
  if (known == state.functions.end()) return kCuErrorInvalidHandle;
  LoadedFunction& loaded = *known->second;
  if (config == nullptr || extra != nullptr) return kCuErrorInvalidValue;
  if (parameters == nullptr && !loaded.kernel->syntax->parameters.empty()) return kCuErrorInvalidValue;
  LaunchShape shape;
  if (const CuResult bad = ShapeOf(*config, loaded, shape); bad != kCuSuccess) return bad;
  std::vector<uint8_t> block = PackParameters(*loaded.kernel->syntax, parameters);
  const auto stream = state.streams.find(config->stream);
  if (stream == state.streams.end() && reinterpret_cast<uintptr_t>(config->stream) > 2) return kCuErrorInvalidHandle;
  if (stream != state.streams.end() && stream->second->capture) {
    stream->second->capture->nodes.push_back({&loaded, shape, std::move(block)});
    return kCuSuccess;
  }
  return state.RunKernel(loaded, shape, block);
}

CuResult StreamBeginCapture(CuStream stream, CuStreamCaptureMode) {
  LS_READY();
  const auto known = state.streams.find(stream);
  if (known == state.streams.end()) return kCuErrorStreamCaptureUnsupported;
  if (known->second->capture) return kCuErrorInvalidValue;
  known->second->capture = std::make_unique<Graph>();
  return kCuSuccess;
}

CuResult StreamEndCapture(CuStream stream, CuGraph* graph) {
  LS_READY();
  const auto known = state.streams.find(stream);
  if (known == state.streams.end() || !known->second->capture) return kCuErrorInvalidValue;
  auto owned = std::move(known->second->capture);
  *graph = reinterpret_cast<CuGraph>(owned.get());
  state.graphs[*graph] = std::move(owned);
  return kCuSuccess;
}

CuResult GraphInstantiate(CuGraphExec* exec, CuGraph graph, unsigned long long) {
  LS_READY();
  const auto known = state.graphs.find(graph);
  if (known == state.graphs.end()) return kCuErrorInvalidHandle;
  auto owned = std::make_unique<Graph>(*known->second);
  *exec = reinterpret_cast<CuGraphExec>(owned.get());
  state.graphs[*exec] = std::move(owned);
  return kCuSuccess;
}

CuResult GraphLaunch(CuGraphExec exec, CuStream) {
  LS_READY();
  const auto known = state.graphs.find(exec);
  if (known == state.graphs.end()) return kCuErrorInvalidHandle;
  for (const GraphNode& node : known->second->nodes) {
    if (state.sticky != kCuSuccess) break;
    state.RunKernel(*node.function, node.shape, node.parameters);
  }
  return kCuSuccess;
}

CuResult GraphExecDestroy(CuGraphExec exec) {
  DriverCall call;
  return call.state.graphs.erase(exec) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}
CuResult GraphDestroy(CuGraph graph) {
  DriverCall call;
  return call.state.graphs.erase(graph) != 0 ? kCuSuccess : kCuErrorInvalidHandle;
}

}  // namespace laneshift::emulator::driver
