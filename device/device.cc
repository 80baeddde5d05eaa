#include "device/device.h"

#include <utility>

#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::device {
namespace {

struct DeviceAttribute {
  CuDeviceAttribute attribute;
  int DeviceFacts::*field;
};

constexpr DeviceAttribute kDeviceAttributes[] = {
    {kCuDeviceComputeCapabilityMajor, &DeviceFacts::compute_major},
    {kCuDeviceComputeCapabilityMinor, &DeviceFacts::compute_minor},
    {kCuDeviceMultiprocessorCount, &DeviceFacts::sm_count},
    {kCuDeviceWarpSize, &DeviceFacts::warp_size},
    {kCuDeviceMaxThreadsPerBlock, &DeviceFacts::max_threads_per_cta},
    {kCuDeviceMaxThreadsPerMultiprocessor, &DeviceFacts::max_threads_per_sm},
    {kCuDeviceMaxRegistersPerBlock, &DeviceFacts::registers_per_cta},
    {kCuDeviceMaxSharedMemoryPerBlock, &DeviceFacts::smem_per_cta_bytes},
    {kCuDeviceMaxSharedMemoryPerBlockOptin, &DeviceFacts::smem_per_cta_optin_bytes},
    {kCuDeviceMaxSharedMemoryPerMultiprocessor, &DeviceFacts::smem_per_sm_bytes},
    {kCuDeviceReservedSharedMemoryPerBlock, &DeviceFacts::smem_reserved_per_cta_bytes},
    {kCuDeviceL2CacheSize, &DeviceFacts::l2_bytes},
    {kCuDeviceClockRate, &DeviceFacts::clock_khz},
    {kCuDeviceMemoryClockRate, &DeviceFacts::memory_clock_khz},
    {kCuDeviceGlobalMemoryBusWidth, &DeviceFacts::memory_bus_bits},
};

Result<DeviceFacts> ReadFacts(const DriverApi& api, CuDevice device, int ordinal) {
  DeviceFacts facts;
  facts.ordinal = ordinal;
  char name[256] = "";
  LS_TRY(DriverStatus(api, api.DeviceGetName(name, sizeof name, device), "cuDeviceGetName"));
  facts.name = name;
  LS_TRY(DriverStatus(api, api.DriverGetVersion(&facts.driver_version), "cuDriverGetVersion"));
  LS_TRY(DriverStatus(api, api.DeviceTotalMem(&facts.memory_bytes, device), "cuDeviceTotalMem"));
  for (const DeviceAttribute& row : kDeviceAttributes) {
    CuResult result = api.DeviceGetAttribute(&(facts.*row.field), row.attribute, device);
    if (result != kCuSuccess) {
      return DriverError(api, result, base::Cat("cuDeviceGetAttribute ", static_cast<int>(row.attribute)));
    }
  }
  constexpr std::pair<CuDeviceAttribute, bool DeviceFacts::*> kAbilities[] = {
      {kCuDeviceClusterLaunch, &DeviceFacts::clusters},
      {kCuDeviceTensorMapAccessSupported, &DeviceFacts::tensor_maps},
      {kCuDevicePageableMemoryAccess, &DeviceFacts::pageable_memory}};
  for (const auto& [attribute, fact] : kAbilities) {
    int value = 0;
    LS_TRY(DriverStatus(api, api.DeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute"));
    facts.*fact = value != 0;
  }
  return facts;
}

}  // namespace

std::string DeviceFacts::ComputeName() const { return base::Cat("sm_", compute_major, compute_minor); }

std::string DeviceFacts::Key() const {
  return base::Cat(name, "/", ComputeName(), "/", sm_count, "sm/", clock_khz / 1000, "MHz/", memory_bus_bits, "bit/",
                   memory_clock_khz / 1000, "MHz");
}

std::string DeviceFacts::Driver() const { return base::Cat(driver_version / 1000, ".", driver_version % 1000 / 10); }

Result<Device> OpenDevice(const DriverApi& api, int ordinal) {
  LS_TRY(DriverStatus(api, api.Init(0), "cuInit"));
  int count = 0;
  LS_TRY(DriverStatus(api, api.DeviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count) {
    return MakeError(ErrorCode::kNotFound, base::Cat("no device ", ordinal, ": there ", count == 1 ? "is " : "are ",
                                                     count, count == 1 ? " device" : " devices", ", counted from 0"));
  }
  CuDevice handle = 0;
  LS_TRY(DriverStatus(api, api.DeviceGet(&handle, ordinal), "cuDeviceGet"));
  LS_ASSIGN(DeviceFacts facts, ReadFacts(api, handle, ordinal));
  CuContext context = nullptr;
  LS_TRY(DriverStatus(api, api.DevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain"));
  return Device({&api, context}, handle, std::move(facts));
}

Device::Device(Context context, CuDevice handle, DeviceFacts facts)
    : context_(context), handle_(handle), facts_(std::move(facts)) {}

Device::Device(Device&& other) noexcept
    : context_(std::exchange(other.context_, {})), handle_(other.handle_), facts_(std::move(other.facts_)) {}

Device& Device::operator=(Device&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  std::swap(facts_, other.facts_);
  return *this;
}

Device::~Device() {
  if (context_.handle == nullptr) return;
  WarnUnreleased(api(), api().DevicePrimaryCtxRelease(handle_), "cuDevicePrimaryCtxRelease");
}

}  // namespace laneshift::device
