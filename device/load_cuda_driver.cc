#include <dlfcn.h>

#include <string>

#include "base/text.h"
#include "device/driver_api.h"
#include "device/driver_error.h"

namespace laneshift::device {
namespace {

// The oldest driver whose functions and numbers we rely on: CUDA 12.0 brought tensor maps and launch attributes.
constexpr int kOldestDriver = 12000;

std::string CudaVersion(int version) { return base::Cat(version / 1000, ".", version % 1000 / 10); }

// Symbols are looked up under their ABI name (cuMemAlloc_v2), so dlsym() answers for exactly the signature in the
// table. cuGetProcAddress() would add only its choice between ABI versions, which the table has already made.
template <typename Function>
bool Bind(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

}  // namespace

Result<DriverApi> LoadCudaDriver() {
  // Never closed: the driver does not survive being unloaded, and tables may be held anywhere.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return MakeError(ErrorCode::kNotFound,
                     base::Cat("no CUDA driver: libcuda.so.1 cannot be opened (", reason ? reason : "no reason given",
                               "); install the NVIDIA driver or use --device emulator"));
  }
  DriverApi api;
  const char* missing = nullptr;
#define CU(member, symbol, parameters) \
  if (!Bind(library, #symbol, api.member) && missing == nullptr) missing = #symbol;
#include "device/driver_api.def"
  int version = 0;
  bool known = api.DriverGetVersion != nullptr && api.DriverGetVersion(&version) == kCuSuccess;
  if (missing != nullptr || !known || version < kOldestDriver) {
    return MakeError(
        ErrorCode::kUnsupported,
        base::Cat("the CUDA driver is too old: it supports CUDA ", known ? CudaVersion(version) : "unknown",
                  missing ? base::Cat(" and lacks ", missing) : "", "; laneshift needs CUDA ",
                  CudaVersion(kOldestDriver), " or later"));
  }
  if (CuResult result = api.Init(0); result != kCuSuccess) {
    Error error = DriverError(api, result, "cuInit");
    if (result == kCuErrorNoDevice) error.message += "; attach an NVIDIA GPU or use --device emulator";
    return error;
  }
  return api;
}

}  // namespace laneshift::device
