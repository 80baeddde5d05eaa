#include "measure/nvml.h"

#include <cstdio>

#include "base/shared_library.h"
#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::measure {
namespace {

using base::Cat;
using base::SharedLibrary;

// Values of nvml.h.
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

// "00000000:1b:00.0", as NVML names a device whatever CUDA_VISIBLE_DEVICES makes of its number.
Result<std::string> PciBusId(const device::Device& device) {
  const device::DriverApi& api = device.api();
  device::CuDevice handle = 0;
  LS_TRY(device::DriverStatus(api, api.DeviceGet(&handle, device.facts().ordinal), "cuDeviceGet"));
  int values[3] = {};
  const device::CuDeviceAttribute attributes[3] = {device::kCuDevicePciDomainId, device::kCuDevicePciBusId,
                                                   device::kCuDevicePciDeviceId};
  for (int i = 0; i < 3; ++i) {
    LS_TRY(
        device::DriverStatus(api, api.DeviceGetAttribute(&values[i], attributes[i], handle), "cuDeviceGetAttribute"));
  }
  char text[32];
  std::snprintf(text, sizeof text, "%08x:%02x:%02x.0", static_cast<unsigned>(values[0]),
                static_cast<unsigned>(values[1]), static_cast<unsigned>(values[2]));
  return std::string(text);
}

Status CheckNvml(int status, std::string_view call) {
  if (status == 0) return Ok();
  return MakeError(ErrorCode::kDriver, Cat(call, ": NVML status ", status));
}

}  // namespace

Result<Nvml> Nvml::Open(const device::Device& device) {
  auto library = SharedLibrary::Open({"libnvidia-ml.so.1"}, {});
  if (!library) return MakeError(ErrorCode::kUnsupported, Cat("no NVML: ", library.error().message));
  Nvml nvml;
  LS_TRY(library->Bind("nvmlInit_v2", &nvml.f_.init));
  LS_TRY(library->Bind("nvmlDeviceGetHandleByPciBusId_v2", &nvml.f_.handle_by_pci));
  LS_TRY(library->Bind("nvmlDeviceGetClockInfo", &nvml.f_.clock));
  LS_TRY(library->Bind("nvmlDeviceGetTemperature", &nvml.f_.temperature));
  LS_TRY(library->Bind("nvmlDeviceGetPowerUsage", &nvml.f_.power));
  LS_TRY(library->Bind("nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.f_.throttle));
  LS_ASSIGN(const std::string bus_id, PciBusId(device));
  LS_TRY(CheckNvml(nvml.f_.init(), "nvmlInit"));
  LS_TRY(CheckNvml(nvml.f_.handle_by_pci(bus_id.c_str(), &nvml.device_), "nvmlDeviceGetHandleByPciBusId"));
  return nvml;
}

store::Conditions Nvml::Read() const {
  store::Conditions conditions;
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (f_.clock(device_, kClockSm, &value) == 0) conditions.sm_mhz = value;
  if (f_.clock(device_, kClockMemory, &value) == 0) conditions.memory_mhz = value;
  if (f_.temperature(device_, kTemperatureGpu, &value) == 0) conditions.temperature_c = value;
  if (f_.power(device_, &value) == 0) conditions.power_w = value / 1000.0;
  if (f_.throttle(device_, &reasons) == 0) conditions.throttle_reasons = static_cast<int64_t>(reasons);
  return conditions;
}

}  // namespace laneshift::measure
