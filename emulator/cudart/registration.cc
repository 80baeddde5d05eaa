// What nvcc's code registers before main: fat binaries, and the host's addresses for their kernels and variables.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/cudart/runtime_bodies.h"

namespace laneshift::emulator::runtime {
namespace {

struct FatBinary {
  const void* image;
  bool tried = false;
  CuResult result = device::kCuSuccess;
  driver::CuLibrary library = nullptr;
};
struct Symbol {
  FatBinary* binary;
  std::string name;
};
struct Registry {
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<FatBinary>> binaries;
  std::unordered_map<const void*, Symbol> functions, variables;
};
// Registration runs in static initialisers, before any object of ours could be made in order.
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

CuResult LoadBinary(FatBinary& binary) {
  if (const CuResult bad = Enter(); bad != device::kCuSuccess) return bad;
  if (!binary.tried) {
    binary.tried = true;
    binary.result = driver::LibraryLoadData(&binary.library, binary.image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  return binary.result;
}

// What names nothing is not found later; the callers return nothing that could say so.
void RegisterSymbol(std::unordered_map<const void*, Symbol> Registry::*symbols, void** module, const void* host,
                    const char* name) {
  if (module == nullptr || name == nullptr) return;
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  (registry.*symbols)[host] = {reinterpret_cast<FatBinary*>(module), name};
}

struct CallConfiguration {
  Dim3 grid, block;
  size_t shared_bytes;
  CuStream stream;
};
thread_local std::vector<CallConfiguration> configurations;

}  // namespace

CudaError FindFunction(const void* symbol, CuFunction* function) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto known = registry.functions.find(symbol);
  if (known == registry.functions.end()) {
    // Kernels of libraries that the program loaded itself come as handles.
    return driver::FuncLoad(reinterpret_cast<CuFunction>(const_cast<void*>(symbol))) == device::kCuSuccess
               ? (*function = reinterpret_cast<CuFunction>(const_cast<void*>(symbol)), 0)
               : static_cast<int>(kCudaInvalidDeviceFunction);
  }
  if (const CuResult bad = LoadBinary(*known->second.binary); bad != device::kCuSuccess) return bad;
  const CuResult found = driver::LibraryGetKernel(function, known->second.binary->library, known->second.name.c_str());
  return found == device::kCuErrorNotFound ? static_cast<int>(kCudaInvalidDeviceFunction) : static_cast<int>(found);
}

CudaError FindVariable(const void* symbol, CuDevicePtr* pointer, size_t* bytes) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto known = registry.variables.find(symbol);
  if (known == registry.variables.end()) return kCudaInvalidSymbol;
  if (const CuResult bad = LoadBinary(*known->second.binary); bad != device::kCuSuccess) return bad;
  const CuResult found =
      driver::LibraryGetGlobal(pointer, bytes, known->second.binary->library, known->second.name.c_str());
  return found == device::kCuErrorNotFound ? static_cast<int>(kCudaInvalidSymbol) : static_cast<int>(found);
}

void** RegisterFatBinary(void* image) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.binaries.push_back(std::make_unique<FatBinary>(FatBinary{image}));
  return reinterpret_cast<void**>(registry.binaries.back().get());
}
void RegisterFatBinaryEnd(void**) {}
// The program is ending: what was loaded goes with it.
void UnregisterFatBinary(void**) {}
void RegisterFunction(void** module, const char* host, char*, const char* name, int, void*, void*, void*, void*, int*) {
  RegisterSymbol(&Registry::functions, module, host, name);
}
void RegisterVariable(void** module, char* host, char*, const char* name, int, size_t, int, int) {
  RegisterSymbol(&Registry::variables, module, host, name);
}
void RegisterManagedVariable(void** module, void** host, char*, const char* name, int, size_t, int, int) {
  RegisterSymbol(&Registry::variables, module, host, name);
}
char InitModule(void** module) {
  return module != nullptr && LoadBinary(*reinterpret_cast<FatBinary*>(module)) == device::kCuSuccess;
}

CudaError body::CompilerGetKernel(CuFunction* kernel, const void* symbol) {
  return Remember(FindFunction(symbol, kernel));
}

unsigned PushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes, CuStream stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
CudaError body::PopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_bytes, CuStream* stream) {
  if (configurations.empty()) return Remember(52);  // missing configuration
  const CallConfiguration& top = configurations.back();
  *grid = top.grid, *block = top.block, *shared_bytes = top.shared_bytes, *stream = top.stream;
  configurations.pop_back();
  return 0;
}

}  // namespace laneshift::emulator::runtime
