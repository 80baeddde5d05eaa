// Device: one opened CUDA device: what it can do, and its primary context.
//
// The primary context is retained while the Device lives, so that laneshift shares memory and streams with the CUDA
// runtime of the same process. Every Buffer, Stream, Event and Module made in context() must be gone before the Device.
// Thread-safety: immutable after OpenDevice(); Activate() acts on the calling thread.
#pragma once

#include <string>

#include "device/context.h"

namespace laneshift::device {

struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  int driver_version = 0;  // as cuDriverGetVersion reports it: 13000 is CUDA 13.0
  int sm_count = 0;
  int warp_size = 0;
  int max_threads_per_cta = 0;
  int max_threads_per_sm = 0;
  int registers_per_cta = 0;
  int smem_per_cta_bytes = 0;        // without opting in
  int smem_per_cta_optin_bytes = 0;  // static and dynamic together
  int smem_per_sm_bytes = 0;
  int smem_reserved_per_cta_bytes = 0;
  int l2_bytes = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  size_t memory_bytes = 0;
  bool clusters = false;
  bool tensor_maps = false;
  bool pageable_memory = false;  // kernels may use any memory of the process, whether or not the driver knows it

  // "sm_90": without the suffix letter, which is a property of code and not of the device.
  std::string ComputeName() const;
  // The key of measurements on devices like this one: "NVIDIA H200/sm_90/132sm/1980MHz/6144bit/3201MHz". It excludes
  // what can change without changing the chip (the ordinal, the driver).
  std::string Key() const;
  // "13.0": the driver version of a measurement.
  std::string Driver() const;
};

class Device {
 public:
  Device(Device&& other) noexcept;
  Device& operator=(Device&& other) noexcept;
  ~Device();

  const DriverApi& api() const { return *context_.api; }
  const DeviceFacts& facts() const { return facts_; }
  Context context() const { return context_; }
  Result<ActiveContext> Activate() const { return ActiveContext::Enter(context_); }

 private:
  friend Result<Device> OpenDevice(const DriverApi& api, int ordinal);
  Device(Context context, CuDevice handle, DeviceFacts facts);

  Context context_;  // handle null: moved from
  CuDevice handle_;
  DeviceFacts facts_;
};

// REQUIRES: `api` outlives the Device. kNotFound says how many devices there are.
Result<Device> OpenDevice(const DriverApi& api, int ordinal);

}  // namespace laneshift::device
