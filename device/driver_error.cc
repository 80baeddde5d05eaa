#include "device/driver_error.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::device {
namespace {

ErrorCode CodeOf(CuResult result) {
  // Not an exhaustive switch: drivers return values that are newer than our list.
  if (result == kCuErrorOutOfMemory || result == kCuErrorLaunchOutOfResources) return ErrorCode::kResourceExhausted;
  if (result == kCuErrorNotFound || result == kCuErrorNoDevice) return ErrorCode::kNotFound;
  if (result == kCuErrorNotSupported || result == kCuErrorUnsupportedPtxVersion || result == kCuErrorNoBinaryForGpu ||
      result == kCuErrorStreamCaptureUnsupported) {
    return ErrorCode::kUnsupported;
  }
  if (result == kCuErrorLaunchTimeout) return ErrorCode::kTimeout;
  return ErrorCode::kDriver;
}

// Whether a result reports a kernel's fault.
bool IsFault(CuResult result) {
  constexpr CuResult kFaults[] = {kCuErrorIllegalAddress,     kCuErrorLaunchTimeout,     kCuErrorHardwareStackError,
                                  kCuErrorIllegalInstruction, kCuErrorMisalignedAddress, kCuErrorInvalidAddressSpace,
                                  kCuErrorInvalidPc,          kCuErrorLaunchFailed};
  return std::find(std::begin(kFaults), std::end(kFaults), result) != std::end(kFaults);
}

// Calls that have nothing to do with a kernel also report a sticky fault.
std::string LostContext(const DriverApi& api, CuResult result) {
  size_t free_bytes = 0, total_bytes = 0;
  if (!IsFault(result) || api.MemGetInfo == nullptr || api.MemGetInfo(&free_bytes, &total_bytes) != result) return {};
  return "; the fault of this or an earlier kernel, of whatever library, stays: the process can use this device's "
         "context no more";
}

}  // namespace

std::string DescribeResult(const DriverApi& api, CuResult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.GetErrorName == nullptr || api.GetErrorName(result, &name) != kCuSuccess || name == nullptr) {
    return base::Cat("CUDA error ", static_cast<int>(result));
  }
  std::string described = base::Cat(name, " (", static_cast<int>(result), ")");
  if (api.GetErrorString != nullptr && api.GetErrorString(result, &text) == kCuSuccess && text != nullptr) {
    described += base::Cat(": ", text);
  }
  return described;
}

Error DriverError(const DriverApi& api, CuResult result, std::string_view call, const char* file, int line) {
  LS_CHECK(result != kCuSuccess, "success is no error: ", call);
  return MakeError(CodeOf(result), base::Cat(call, ": ", DescribeResult(api, result), LostContext(api, result)), file,
                   line);
}

Status DriverStatus(const DriverApi& api, CuResult result, std::string_view call, const char* file, int line) {
  if (result == kCuSuccess) return Ok();
  return DriverError(api, result, call, file, line);
}

}  // namespace laneshift::device
